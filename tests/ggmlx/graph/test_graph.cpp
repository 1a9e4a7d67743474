#include "ggmlx/graph/graph.h"

#include <gtest/gtest.h>

#include "ggmlx/graph/call.h"
#include "ggmlx/graph/ops.h"

namespace ggmlx {
namespace {

TEST(Graph, PrintsOneLinePerNodeWithoutRepeatingTheScope) {
    TensorSet weights;
    Tensor w = weights.add("blk.3.attn_q.weight", DType::Q8_0, {64, 32}, Role::Attention);
    Graph g;
    Tensor x = g.input("x", DType::F32, {5, 32});
    Tensor n = rms_norm(g, x, {}, 1e-6f);
    g.set_scope("blk.3");
    Tensor q = matmul(g, w, n);
    top_k(g, q, 2);
    EXPECT_EQ(g.to_string(),
              "0 rms_norm(x) -> [5, 32] f32\n"
              "1 blk.3 matmul(attn_q.weight, rms_norm) -> [5, 64] f32\n"
              "2 blk.3 top_k(matmul) -> [5, 2] f32, [5, 2] i32\n");
}

TEST(Graph, NamesValuesByScopeAndOpAndTheLastOneIsFound) {
    Graph g;
    Tensor x = g.input("x", DType::F32, {1, 4});
    Tensor a = scale(g, x, 1.0f);
    Tensor b = scale(g, a, 2.0f);
    g.set_scope("blk.0");
    Tensor c = scale(g, b, 3.0f);
    EXPECT_EQ(a.name(), "scale");
    EXPECT_EQ(c.name(), "blk.0.scale");
    EXPECT_EQ(g.find("scale"), b);
    EXPECT_EQ(g.find("x"), x);
    EXPECT_FALSE(g.find("nothing"));
    g.set_name(c, "result");
    EXPECT_EQ(g.find("result"), c);
    EXPECT_FALSE(g.find("blk.0.scale"));
    EXPECT_EQ(c.info().producer, 2);
    EXPECT_EQ(x.info().producer, -1);
    EXPECT_EQ(g.n_tensors(), 4);
}

TEST(Graph, AnAliasSharesBytesAndIsFoundOnlyUnderANameOfItsOwn) {
    Graph g;
    Tensor x = g.input("x", DType::F32, {2, 6});
    Tensor heads = reshape(g, x, {2, 3, 2});
    EXPECT_EQ(heads.storage(), x);
    EXPECT_EQ(heads.name(), "x");
    EXPECT_EQ(g.find("x"), x);
    g.set_name(heads, "heads");
    EXPECT_EQ(g.find("heads"), heads);
    EXPECT_TRUE(g.nodes().empty());
}

TEST(Graph, RefusesNamesThatAreTakenAndTensorsOfOthers) {
    Graph g, other;
    Tensor x = g.input("x", DType::F32, {1});
    EXPECT_THROW(g.input("x", DType::F32, {1}), Error);
    EXPECT_THROW(g.input("", DType::F32, {1}), Error);
    g.output(x, "y");
    EXPECT_THROW(g.output(x, "y"), Error);
    EXPECT_EQ(g.outputs().size(), 1u);
    EXPECT_THROW(g.output(other.input("z", DType::F32, {1}), "z"), Error);
    EXPECT_THROW(g.set_name(Tensor(), "z"), Error);
}

TEST(Graph, HandlesStayValidWhenAGraphIsMoved) {
    Graph g;
    Tensor x = g.input("x", DType::F32, {3});
    Graph moved = std::move(g);
    EXPECT_EQ(moved.find("x"), x);
    EXPECT_EQ(scale(moved, x, 1.0f).shape(), Shape({3}));
}

TEST(Op, EveryOpHasANameOfItsOwn) {
    for (int i = 0; i < kOpCount; ++i)
        for (int j = 0; j < i; ++j) EXPECT_NE(name(static_cast<Op>(i)), name(static_cast<Op>(j)));
    EXPECT_EQ(name(Op::GetRows), "get_rows");
    EXPECT_EQ(name(Op::ExpertSum), "expert_sum");
    EXPECT_EQ(name(Op::Copy), "copy");
}

TEST(CallStatus, KeepsTheFirstReportUntilCleared) {
    CallStatus status;
    EXPECT_TRUE(status.ok());
    status.report(Fault::BadIndex, 123456);
    status.report(Fault::NonFinite, 1);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.fault(), Fault::BadIndex);
    EXPECT_EQ(status.row(), 123456);
    status.clear();
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(describe(Fault::NonFinite), "a value is NaN or infinite");
}

}  // namespace
}  // namespace ggmlx
