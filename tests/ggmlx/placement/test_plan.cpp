// make_plan without hardware: devices are data. Where nodes go, what is copied, which segments may run at the same
// time.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ggmlx/placement/moe_model.h"
#include "ggmlx/placement/plan.h"
#include "ggmlx/placement/rules.h"

namespace ggmlx {
namespace {

using namespace test;

std::vector<PlanDevice> devices(std::function<bool(const Node&)> ref0_supports = [](const Node&) { return true; }) {
    auto yes = [](const Node&) { return true; };
    auto scratch = [](const Node&) { return size_t{100}; };
    return {{"cpu", yes, scratch}, {"ref0", std::move(ref0_supports), scratch}, {"ref1", yes, scratch}};
}

struct Planned {
    TensorSet set;
    Placement placement;
    Plan plan;
};

std::unique_ptr<Planned> plan_moe(std::string_view rules, DeviceId default_device = 0,
                                  std::vector<PlanDevice> list = devices()) {
    auto p = std::make_unique<Planned>();
    add_moe_tensors(p->set, DType::Q8_0);
    std::vector<std::string> names;
    for (const auto& d : list) names.push_back(d.name);
    const auto parsed = rules.empty() ? std::vector<PlacementRule>{} : parse_rules(rules);
    p->placement = place(p->set, parsed, names, default_device);
    p->plan =
        make_plan({.graph = moe_graph(p->set, 3), .placement = &p->placement, .devices = list, .fallback_device = 0});
    return p;
}

int count_steps(const Plan& plan, Op op, DeviceId device) {
    int n = 0;
    for (const auto& s : plan.segments)
        if (s.device == device)
            n += static_cast<int>(
                std::count_if(s.steps.begin(), s.steps.end(), [&](const PlanStep& st) { return st.op == op; }));
    return n;
}

/// Segment that runs the first step of an op on a device, counted from `from`.
int segment_of(const Plan& plan, Op op, DeviceId device, size_t from = 0) {
    for (size_t s = from; s < plan.segments.size(); ++s)
        for (const auto& step : plan.segments[s].steps)
            if (plan.segments[s].device == device && step.op == op) return static_cast<int>(s);
    return -1;
}

bool must_wait(const Plan& plan, int later, int earlier) {
    const auto& segment = plan.segments[static_cast<size_t>(later)];
    for (int32_t w : segment.waits)
        if (w == earlier || must_wait(plan, w, earlier)) return true;
    for (int s = later - 1; s >= 0; --s)
        if (plan.segments[static_cast<size_t>(s)].device == segment.device)
            return s == earlier || must_wait(plan, s, earlier);
    return false;
}

TEST(Plan, OneDeviceIsOneSegmentWithoutCopies) {
    const auto p = plan_moe("");
    ASSERT_EQ(p->plan.segments.size(), 1u);
    EXPECT_EQ(count_steps(p->plan, Op::Copy, 0), 0);
    EXPECT_EQ(p->plan.n_switches(), 0);
    EXPECT_TRUE(p->plan.notes.empty());
    EXPECT_EQ(count_steps(p->plan, Op::ExpertRows, 0), 2);
    EXPECT_EQ(count_steps(p->plan, Op::ExpertSum, 0), 2);
}

TEST(Plan, ExpertsElsewhereCostTwoSwitchesALayer) {
    const auto p = plan_moe("_exps=cpu", 1);
    EXPECT_EQ(count_steps(p->plan, Op::ExpertRows, 0), 2);
    EXPECT_EQ(count_steps(p->plan, Op::ExpertSum, 1), 2) << "the rows are added where the routing weights are";
    EXPECT_LE(p->plan.n_switches(), 4);
    EXPECT_EQ(count_steps(p->plan, Op::Copy, 0), 4) << "activations and ids go down";
    EXPECT_EQ(count_steps(p->plan, Op::Copy, 1), 2) << "rows come up";
}

TEST(Plan, TheSharedExpertRunsBesideTheRoutedOnes) {
    const auto p = plan_moe("_exps=cpu", 1);
    const int routed = segment_of(p->plan, Op::ExpertRows, 0);
    const int shared = segment_of(p->plan, Op::SwiGLU, 1);
    const int sum = segment_of(p->plan, Op::ExpertSum, 1);
    ASSERT_GE(routed, 0);
    ASSERT_GE(shared, 0);
    EXPECT_FALSE(must_wait(p->plan, shared, routed)) << p->plan.to_string();
    EXPECT_FALSE(must_wait(p->plan, routed, shared)) << p->plan.to_string();
    EXPECT_TRUE(must_wait(p->plan, sum, routed));
}

TEST(Plan, ExpertsOfSeveralDevicesRunAtTheSameTime) {
    const auto p = plan_moe("_exps@0-1=ref0,_exps@2-3=ref1");
    for (DeviceId d : {0, 1, 2}) EXPECT_EQ(count_steps(p->plan, Op::ExpertRows, d), 2);
    const int a = segment_of(p->plan, Op::ExpertRows, 1), b = segment_of(p->plan, Op::ExpertRows, 2);
    EXPECT_FALSE(must_wait(p->plan, a, b));
    EXPECT_FALSE(must_wait(p->plan, b, a));
    EXPECT_EQ(p->plan.notes.size(), 2u);
    EXPECT_EQ(p->plan.slot_tables.size(), 6u);
}

TEST(Plan, MatricesOfAnExpertOnDifferentDevicesAreSplitAndSaidSo) {
    const auto p = plan_moe("blk.0.ffn_down_exps=ref0");
    EXPECT_EQ(count_steps(p->plan, Op::ExpertMatmul, 0), 2);
    EXPECT_EQ(count_steps(p->plan, Op::ExpertMatmul, 1), 1);
    ASSERT_EQ(p->plan.notes.size(), 1u);
    EXPECT_NE(p->plan.notes[0].find("separate steps"), std::string::npos);
}

TEST(Plan, AnOpThatADeviceLacksGoesToTheFallbackWithANote) {
    const auto p = plan_moe("attn_norm=ref0", 0, devices([](const Node& n) { return n.op != Op::RmsNorm; }));
    EXPECT_EQ(count_steps(p->plan, Op::RmsNorm, 0), 4);
    ASSERT_EQ(p->plan.notes.size(), 4u);  // two moved ops and two weights that are copied each step
    EXPECT_NE(p->plan.notes[0].find("rms_norm runs on cpu because ref0"), std::string::npos) << p->plan.notes[0];
}

TEST(Plan, AnOpThatMustStayAndCannotIsRefused) {
    EXPECT_THROW(plan_moe("cache=ref0", 0, devices([](const Node& n) { return n.op != Op::Attention; })), Error);
    EXPECT_THROW(plan_moe("_exps@0=ref0", 0, devices([](const Node& n) { return n.op != Op::ExpertRows; })), Error);
}

TEST(Plan, CachesRunWhereTheyLive) {
    const auto p = plan_moe("blk.1.cache=ref1");
    EXPECT_EQ(count_steps(p->plan, Op::Attention, 0), 1);
    EXPECT_EQ(count_steps(p->plan, Op::Attention, 2), 1);
    EXPECT_EQ(count_steps(p->plan, Op::CacheAppend, 2), 2);
}

TEST(Plan, IsAPureFunction) {
    const auto a = plan_moe("blk.0=ref0,_exps@0-2=ref1"), b = plan_moe("blk.0=ref0,_exps@0-2=ref1");
    EXPECT_EQ(a->plan.to_string(), b->plan.to_string());
    EXPECT_EQ(a->plan.arena_bytes, b->plan.arena_bytes);
}

TEST(Plan, SegmentsFormADag) {
    const auto p = plan_moe("blk.0.attn=ref0,blk.1.attn=ref1,_exps@0-2=ref1,shexp=ref0");
    for (size_t s = 0; s < p->plan.segments.size(); ++s)
        for (int32_t w : p->plan.segments[s].waits) {
            EXPECT_LT(w, static_cast<int32_t>(s));
            EXPECT_NE(p->plan.segments[static_cast<size_t>(w)].device, p->plan.segments[s].device);
        }
}

}  // namespace
}  // namespace ggmlx
