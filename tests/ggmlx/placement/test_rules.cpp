// Placement rules: parsing of -ot arguments, the first match wins, and every mistake is an error that names the rule.

#include <gtest/gtest.h>

#include "ggmlx/placement/rules.h"

namespace ggmlx {
namespace {

const std::vector<std::string> kDevices = {"cpu", "ref0", "ref1"};

TensorSet two_layers() {
    TensorSet set;
    set.add("token_embd.weight", DType::F32, {32, 16}, Role::Embedding);
    for (std::string il : {"0", "1"}) {
        set.add("blk." + il + ".attn_q.weight", DType::F32, {16, 16}, Role::Attention);
        set.add("blk." + il + ".ffn_gate_exps.weight", DType::Q8_0, {8, 32, 16}, Role::Expert);
    }
    return set;
}

Placement place_by(const TensorSet& set, std::string_view text, DeviceId fallback = 0) {
    return place(set, parse_rules(text), kDevices, fallback);
}

template <class F>
std::string error_of(F&& f) {
    try {
        f();
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::InvalidArgument);
        return e.what();
    }
    return "no error";
}

TEST(Rules, SplitAtTheLastEqualsSign) {
    const auto rules = parse_rules("a=b=CPU");
    ASSERT_EQ(rules.size(), 1u);
    EXPECT_EQ(rules[0].pattern, "a=b");
    EXPECT_EQ(rules[0].device, "cpu");
}

TEST(Rules, SeveralInOneArgumentAndCommasInsideAPattern) {
    const auto rules = parse_rules("x{1,2}y=ref0,blk\\.0=CPU, z@0-3,7=Ref1");
    ASSERT_EQ(rules.size(), 3u);
    EXPECT_EQ(rules[0].pattern, "x{1,2}y");
    EXPECT_EQ(rules[1].pattern, "blk\\.0");
    EXPECT_EQ(rules[2].pattern, "z");
    EXPECT_EQ(rules[2].device, "ref1");
    const std::vector<std::pair<int64_t, int64_t>> ranges = {{0, 3}, {7, 7}};
    EXPECT_EQ(rules[2].experts, ranges);
}

TEST(Rules, FirstMatchWinsAlsoWhenItEqualsTheDefault) {
    const TensorSet set = two_layers();
    const auto placement = place_by(set, "attn_q=cpu,.*=ref0");
    EXPECT_EQ(placement[set.get("blk.0.attn_q.weight")].devices, std::vector<DeviceId>{0});
    EXPECT_EQ(placement[set.get("blk.0.attn_q.weight")].rules, std::vector<int32_t>{0});
    EXPECT_EQ(placement[set.get("token_embd.weight")].devices, std::vector<DeviceId>{1});
    EXPECT_EQ(placement.rule_matches, (std::vector<int64_t>{2, 5}));
}

TEST(Rules, ExpertsOfOneTensorGoToSeveralDevices) {
    const TensorSet set = two_layers();
    const auto placement = place_by(set, "_exps@0-2,7=ref0,_exps@3=ref1");
    const Home& home = placement[set.get("blk.1.ffn_gate_exps.weight")];
    EXPECT_EQ(home.devices, (std::vector<DeviceId>{1, 1, 1, 2, 0, 0, 0, 1}));
    EXPECT_EQ(home.rules, (std::vector<int32_t>{0, 0, 0, 1, -1, -1, -1, 0}));
    EXPECT_FALSE(placement[set.get("blk.0.attn_q.weight")].is_split());
}

TEST(Rules, WhatMatchesNothingIsAnErrorWithNearNames) {
    const TensorSet set = two_layers();
    const auto message = error_of([&] { place_by(set, "blk\\.0\\.attn_w=cpu"); });
    EXPECT_NE(message.find("'blk\\.0\\.attn_w=cpu' matches no tensor"), std::string::npos) << message;
    EXPECT_NE(message.find("attn_q.weight"), std::string::npos) << message;
}

TEST(Rules, UnknownDeviceListsTheDevices) {
    const TensorSet set = two_layers();
    const auto message = error_of([&] { place_by(set, "attn=cuda7"); });
    EXPECT_NE(message.find("no device 'cuda7'"), std::string::npos) << message;
    EXPECT_NE(message.find("cpu, ref0, ref1"), std::string::npos) << message;
}

TEST(Rules, ExpertsThatDoNotExist) {
    const TensorSet set = two_layers();
    EXPECT_NE(error_of([&] { place_by(set, "_exps@0-8=cpu"); }).find("there is no expert 8"), std::string::npos);
    EXPECT_NE(error_of([&] { place_by(set, "attn@0=cpu"); }).find("none of the 2 tensors it matches has experts"),
              std::string::npos);
}

TEST(Rules, MalformedRulesAreNamed) {
    EXPECT_NE(error_of([] { parse_rules("blk.(=cpu"); }).find("position 5"), std::string::npos);
    EXPECT_NE(error_of([] { parse_rules("cpu"); }).find("REGEX[@EXPERTS]=DEVICE"), std::string::npos);
    EXPECT_NE(error_of([] { parse_rules("=cpu"); }).find("REGEX[@EXPERTS]=DEVICE"), std::string::npos);
    EXPECT_NE(error_of([] { parse_rules("a@3-1=cpu"); }).find("'3-1' is no range"), std::string::npos);
    EXPECT_NE(error_of([] { parse_rules("a@x=cpu"); }).find("'x' is no range"), std::string::npos);
}

TEST(Rules, AnExplodingPatternIsAnErrorNotAHang) {
    TensorSet set;
    set.add(std::string(10'000, 'a') + "b", DType::F32, {1}, Role::Norm);
    const auto message = error_of([&] { place_by(set, "(a+)+$=cpu"); });
    EXPECT_NE(message.find("takes too long"), std::string::npos) << message;
    EXPECT_NE(message.find("(a+)+$=cpu"), std::string::npos) << message;
}

}  // namespace
}  // namespace ggmlx
