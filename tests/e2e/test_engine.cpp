// What the engine promises besides numbers: errors that leave sessions as they were, memory reserved at the start,
// kept values.

#include "ggmlx/core/error.h"
#include "support.h"

namespace e2e {
namespace {

using ggmlx::ErrorKind;

template <class F>
ggmlx::Error error_of(F&& f) {
    try {
        f();
    } catch (const ggmlx::Error& e) {
        return e;
    }
    return {ErrorKind::Io, "no error"};
}

class EngineTest : public testing::Test {
  protected:
    TempFolder folder_;
    const llm::Model model_ = llm::Model::open(make_model(folder_, "fixtures/llama", "f32"));
    const std::vector<llm::TokenId> prompt_ = reference_ids("fixtures/llama", "p33.ids");
};

TEST_F(EngineTest, SaysThatTheContextIsFullAndLeavesTheSessionAsItWas) {
    llm::EngineOptions options = exact_options();
    options.n_ctx = 40;
    llm::Engine engine(model_, options);
    llm::Session session(engine);
    engine.eval({&session, prompt_, 1});
    const auto e = error_of([&] { engine.eval({&session, std::span(prompt_).first(8), 1}); });
    EXPECT_EQ(e.kind(), ErrorKind::OutOfMemory);
    EXPECT_NE(std::string(e.what()).find("context full: 33 tokens"), std::string::npos) << e.what();
    EXPECT_EQ(session.length(), 33);
    EXPECT_EQ(session.n_free(), 7);
    EXPECT_EQ(engine.eval({&session, std::span(prompt_).first(7), 1}).n_rows(), 1);
}

TEST_F(EngineTest, RefusesBatchesThatMakeNoSense) {
    llm::EngineOptions options = exact_options();
    options.n_sequences = 2;
    llm::Engine engine(model_, options), other(model_, options);
    llm::Session a(engine), foreign(other);
    const auto n_vocab = static_cast<llm::TokenId>(model_.config().n_vocab);
    const std::vector<llm::TokenId> good{1, 2}, negative{1, -1}, large{n_vocab};
    const auto kind = [&](std::vector<llm::BatchItem> batch) { return error_of([&] { engine.eval(batch); }).kind(); };
    EXPECT_EQ(kind({{&a, negative, 1}}), ErrorKind::InvalidArgument);
    EXPECT_EQ(kind({{&a, large, 1}}), ErrorKind::InvalidArgument);
    EXPECT_EQ(kind({{&a, {}, 0}}), ErrorKind::InvalidArgument);
    EXPECT_EQ(kind({{&a, good, 3}}), ErrorKind::InvalidArgument);
    EXPECT_EQ(kind({{&a, good, 1}, {&a, good, 1}}), ErrorKind::InvalidArgument);
    EXPECT_EQ(kind({{&foreign, good, 1}}), ErrorKind::InvalidArgument);
    EXPECT_EQ(kind({{nullptr, good, 1}}), ErrorKind::InvalidArgument);
    EXPECT_EQ(a.length(), 0);
    EXPECT_EQ(engine.eval({&a, good, 2}).n_rows(), 2);
}

TEST_F(EngineTest, GivesSequencesBackWhenSessionsEnd) {
    llm::Engine engine(model_, exact_options());
    { llm::Session session(engine); }
    llm::Session first(engine);
    EXPECT_EQ(error_of([&] { llm::Session second(engine); }).kind(), ErrorKind::OutOfMemory);
    llm::Session moved(std::move(first));
    EXPECT_EQ(engine.eval({&moved, prompt_, 1}).n_rows(), 1);
}

TEST_F(EngineTest, RefusesAContextLongerThanTheModels) {
    llm::EngineOptions options = exact_options();
    options.n_ctx = model_.config().n_ctx_train + 1;
    const auto e = error_of([&] { llm::Engine(model_, options); });
    EXPECT_EQ(e.kind(), ErrorKind::InvalidArgument);
    EXPECT_NE(std::string(e.what()).find(std::to_string(model_.config().n_ctx_train)), std::string::npos) << e.what();
}

TEST_F(EngineTest, ReservesAllMemoryAtTheStart) {
    llm::EngineOptions options = exact_options();
    options.max_batch = 64;
    llm::Engine engine(model_, options);
    const uint64_t reserved = engine.workspace_bytes();
    for (size_t n = 1; n <= prompt_.size(); ++n) {
        llm::Session session(engine);
        engine.eval({&session, std::span(prompt_).first(n), 1});
    }
    llm::Session session(engine);
    const std::vector<llm::TokenId> longest(static_cast<size_t>(engine.n_ctx()), 5);
    engine.eval({&session, longest, 1});
    EXPECT_EQ(session.n_free(), 0);
    EXPECT_EQ(engine.workspace_bytes(), reserved);
}

TEST_F(EngineTest, KeepsNamedValuesOfAllSteps) {
    llm::EngineOptions options = exact_options();
    options.max_batch = 10;
    options.dumps = {"blk.0.ffn_out", "logits", "embd"};
    llm::Engine engine(model_, options);
    llm::Session session(engine);
    const llm::Logits logits = engine.eval({&session, prompt_, 1});
    const int64_t n_embd = model_.config().n_embd;
    EXPECT_EQ(engine.dumped("blk.0.ffn_out").shape, (ggmlx::Shape{33, n_embd}));
    EXPECT_EQ(engine.dumped("embd").shape, (ggmlx::Shape{33, n_embd}));
    ASSERT_EQ(engine.dumped("logits").bytes.size(), logits.values.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(engine.dumped("logits").bytes.data(), logits.values.data(), logits.values.size() * 4), 0);

    options.dumps = {"blk.0.fn_out"};
    const auto e = error_of([&] { llm::Engine(model_, options); });
    EXPECT_EQ(e.kind(), ErrorKind::InvalidArgument);
    EXPECT_NE(std::string(e.what()).find("ffn_out"), std::string::npos) << e.what();
}

TEST_F(EngineTest, PutsALayersCacheBesideItsWeightsUnlessARuleSaysOtherwise) {
    llm::EngineOptions options = exact_options();
    options.rules = ggmlx::parse_rules("blk\\.1\\.cache_v=ref1,blk\\.1\\.=ref0");
    const llm::Engine engine(model_, options);
    const auto& tensors = engine.blueprint().tensors();
    const auto device = [&](const char* name) { return engine.blueprint().placement()[tensors.get(name)].devices[0]; };
    EXPECT_EQ(device("blk.0.cache_k"), 0);
    EXPECT_EQ(device("blk.1.cache_k"), 1);
    EXPECT_EQ(device("blk.1.cache_v"), 2);
}

TEST_F(EngineTest, SessionsKeepACommonPrefix) {
    llm::Engine engine(model_, exact_options());
    llm::Session session(engine);
    engine.eval({&session, prompt_, 0});
    std::vector<llm::TokenId> other(prompt_.begin(), prompt_.begin() + 20);
    other.push_back((prompt_[20] + 1) % 100);
    EXPECT_EQ(session.keep_common_prefix(other), 20);
    EXPECT_EQ(session.length(), 20);
    EXPECT_EQ(session.keep_common_prefix(std::span(prompt_).first(20)), 19) << "one token must be left to evaluate";
    EXPECT_EQ(session.keep_common_prefix({}), 0);
}

}  // namespace
}  // namespace e2e
