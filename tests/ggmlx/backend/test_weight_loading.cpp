// Weights from a file: in place or in memory of their own, whole or shared between devices, compressed or not, give the
// same bytes; damage is noticed.

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "ggmlx/backend/cpu/cpu_backend.h"
#include "ggmlx/backend/host_memory.h"
#include "ggmlx/backend/reference_backend.h"
#include "ggmlx/backend/weights.h"
#include "tests/ggmlx/fake_root.h"
#include "tests/ggmlx/file/sample_model.h"

namespace ggmlx {
namespace {

using namespace test;

/// The sample model, written with or without compression, on cpu and ref0.
class WeightLoadingTest : public testing::TestWithParam<bool> {
  protected:
    std::string path_ = fresh_path("weights.ggmx");
    TensorSet set_;
    std::unique_ptr<Backend> cpu_ = make_cpu_backend({.n_threads = 1}), ref_ = make_reference_backend("ref0");

    void SetUp() override {
        write_model(path_, sample_documents(), sample_tensors(), GetParam());
        const ModelFile file = ModelFile::open(path_);
        for (const StoredTensor& t : file.tensors()) set_.add(t.name, t.dtype, t.shape, t.role);
    }
    void TearDown() override { std::remove(path_.c_str()); }

    std::unique_ptr<DeviceWeights> weights(const std::string& rules) {
        const std::vector<std::string> names = {"cpu", "ref0"};
        const auto parsed = rules.empty() ? std::vector<PlacementRule>{} : parse_rules(rules);
        return std::make_unique<DeviceWeights>(set_, place(set_, parsed, names, 0),
                                               std::vector<Backend*>{cpu_.get(), ref_.get()});
    }
    /// Compares every slice of every tensor, wherever it is, with the file's.
    void expect_the_bytes_of(const ModelFile& file, const DeviceWeights& weights) {
        for (int32_t id = 0; id < set_.size(); ++id) {
            const Tensor tensor = set_[id];
            const StoredTensor& stored = *file.find(tensor.name());
            std::vector<std::byte> raw(stored.raw_bytes);
            file.read(stored, raw);
            const bool is_stacked = stored.expert_stride > 0;
            const int64_t n_slices = is_stacked ? tensor.dim(0) : 1;
            const auto size = static_cast<size_t>(storage_bytes(tensor.dtype(), tensor.shape()) / n_slices);
            for (int64_t e = 0; e < n_slices; ++e) {
                const DeviceId device = weights.placement()[tensor].device_of(e);
                const TensorView view = weights.view(tensor, device);
                const int64_t slot = is_stacked ? weights.slot_table(tensor, device)[static_cast<size_t>(e)] : 0;
                ASSERT_GE(slot, 0);
                EXPECT_EQ(std::memcmp(view.data + slot * view.slot_stride,
                                      raw.data() + static_cast<size_t>(e) * stored.expert_stride, size),
                          0)
                    << tensor.name() << " slice " << e;
            }
        }
    }
};

TEST_P(WeightLoadingTest, AllWaysGiveTheSameBytes) {
    const ModelFile file = ModelFile::open(path_);
    for (const char* rules : {"", "exps@0-1=ref0", "exps@1=ref0,norm=ref0"})
        for (bool resident : {false, true}) {
            SCOPED_TRACE(testing::Message() << "rules \"" << rules << "\", resident " << resident);
            const auto loaded = weights(rules);
            loaded->load(file, {.resident = resident});
            expect_the_bytes_of(file, *loaded);
        }
}

TEST_P(WeightLoadingTest, OfItsOwnIsWhereResidentWeightsAre) {
    const ModelFile file = ModelFile::open(path_);
    const auto mapped = weights(""), resident = weights("");
    mapped->load(file);
    resident->load(file, {.resident = true});
    EXPECT_EQ(resident->host_weights().mapped_bytes, 0u);
    EXPECT_EQ(mapped->host_weights().mapped_bytes > 0, !GetParam()) << "what is compressed cannot be read in place";
    EXPECT_EQ(mapped->host_weights().mapped_bytes + mapped->host_weights().resident_bytes,
              resident->host_weights().resident_bytes);
}

TEST_P(WeightLoadingTest, ProgressEndsWithAllBytes) {
    const ModelFile file = ModelFile::open(path_);
    uint64_t last = 0, total = 1;
    weights("")->load(file, {.resident = true, .progress = [&](uint64_t done, uint64_t all) {
                                 EXPECT_LE(done, all);
                                 last = done;
                                 total = all;
                             }});
    EXPECT_EQ(last, total);
}

TEST_P(WeightLoadingTest, DamageIsNoticedWhenWeightsAreCopied) {
    auto bytes = read_bytes(path_);
    const StoredTensor first = ModelFile::open(path_).tensors().front();
    bytes[first.offset + 3] ^= std::byte{0x10};
    write_bytes(path_, bytes);
    const ModelFile file = ModelFile::open(path_);
    try {
        weights("")->load(file, {.resident = true});
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::CorruptFile);
        EXPECT_NE(std::string(e.what()).find(first.name), std::string::npos) << e.what();
    }
}

/// Compressed tensors are expanded from the mapping, so this is about the others.
class RawWeightLoadingTest : public WeightLoadingTest {};
TEST_P(RawWeightLoadingTest, AFileThatWasCutMeanwhileIsAnError) {
    const ModelFile file = ModelFile::open(path_);
    std::filesystem::resize_file(path_, file.tensors().back().offset + 1);
    try {
        weights("")->load(file, {.resident = true});
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::Io);
        EXPECT_NE(std::string(e.what()).find("was longer when it was opened"), std::string::npos) << e.what();
    }
}

INSTANTIATE_TEST_SUITE_P(File, WeightLoadingTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "compressed" : "raw"; });

INSTANTIATE_TEST_SUITE_P(File, RawWeightLoadingTest, testing::Values(false));

class HostMemory : public FakeRoot {};

TEST_F(HostMemory, SaysWhetherTheSystemGivesHugePages) {
    EXPECT_FALSE(gives_huge_pages(root()));
    write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
    EXPECT_FALSE(gives_huge_pages(root()));
    write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
    EXPECT_TRUE(gives_huge_pages(root()));
    write("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never");
    EXPECT_TRUE(gives_huge_pages(root()));
}

TEST_F(HostMemory, LocksWhatTheLimitAllows) {
    const auto small = alloc_host("cpu", 4096);
    EXPECT_EQ(lock_memory(small.get(), 4096), "");
    EXPECT_EQ(lock_memory(small.get(), 0), "");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these make mlock() do nothing
    // An address range that is not mapped cannot be locked by anybody.
    EXPECT_NE(lock_memory(reinterpret_cast<const void*>(uintptr_t{4096}), 4096), "");
#endif
}

}  // namespace
}  // namespace ggmlx
