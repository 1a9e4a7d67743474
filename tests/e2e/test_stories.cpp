// stories260k, a real trained model, against its golden outputs (tests/data/stories260k/ORIGIN.md).

#include <fstream>
#include <nlohmann/json.hpp>

#include "src/session/generate.h"
#include "src/session/perplexity.h"
#include "support.h"

namespace e2e {
namespace {

using Ids = std::vector<llm::TokenId>;

class Stories : public testing::Test {
  protected:
    TempFolder folder_;
    const std::string path_ = make_model(folder_, "stories260k");
    const llm::Model model_ = llm::Model::open(path_);
    const nlohmann::json expected_ = nlohmann::json::parse(std::ifstream(data_path("stories260k/expected.json")));

    /// The defaults, on one thread.
    static llm::EngineOptions defaults() {
        llm::EngineOptions options;
        options.devices.n_threads = 1;
        return options;
    }
    /// New greedy ids of the golden story, without its prompt.
    Ids story() const {
        const Ids all = expected_["greedy"]["ids"];
        return Ids(all.begin() + 1, all.end());
    }
};

TEST_F(Stories, ContinuesGreedilyAsTheReferenceDoes) {
    llm::EngineOptions options = defaults();
    llm::Engine engine(model_, options);
    llm::Session session(engine);
    const Ids prompt = expected_["greedy"]["prompt_ids"], want = story();
    EXPECT_EQ(greedy(session, prompt, static_cast<int64_t>(want.size())), want);
}

TEST_F(Stories, CachesInF32BecauseItsMatricesAre) {
    const llm::Engine engine(model_, defaults());
    EXPECT_EQ(engine.blueprint().cache().layout().k, ggmlx::DType::F32);
    EXPECT_EQ(engine.blueprint().cache().layout().v, ggmlx::DType::F32);
}

TEST_F(Stories, GivesTheReferencesLogits) {
    const Ids bos{1};
    const auto logits = prompt_logits(model_, exact_options(), bos, 1);
    const std::vector<float> first = expected_["logits_after_bos_first_16"];
    constexpr float kGoldenTolerance = 1e-4f;  // the golden values have five decimals
    EXPECT_LE(max_difference(std::span(logits).first(first.size()), first), kGoldenTolerance);
    for (const auto& entry : expected_["top5_after_bos"])
        EXPECT_NEAR(logits.at(entry[0].get<size_t>()), entry[1].get<float>(), kGoldenTolerance);
    const Ids all = expected_["greedy"]["ids"];
    const auto later = prompt_logits(model_, exact_options(), std::span(all).first(17), 1);
    for (const auto& entry : expected_["top5_after_17_greedy_ids"])
        EXPECT_NEAR(later.at(entry[0].get<size_t>()), entry[1].get<float>(), kGoldenTolerance);
}

TEST_F(Stories, HasTheReferencesPerplexity) {
    for (const auto& entry : expected_["perplexity"]) {
        const Ids ids = entry["ids"];
        const auto n = static_cast<int64_t>(ids.size()) - 1;
        llm::EngineOptions options = defaults();
        options.max_outputs = 100;  // so that windows are cut
        llm::Engine engine(model_, options);
        const llm::Perplexity whole = llm::perplexity(engine, ids, {n, std::nullopt});
        EXPECT_NEAR(whole.nll, entry["nll_per_token"].get<double>(), 2e-5);
        EXPECT_NEAR(whole.perplexity, entry["ppl"].get<double>(), 1e-3);
        EXPECT_EQ(whole.n_tokens, n);
        EXPECT_EQ(ids[0], 1);
        const llm::Perplexity with_bos = llm::perplexity(engine, std::span(ids).subspan(1), {n, 1});
        EXPECT_EQ(with_bos.nll, whole.nll) << "BOS in front of the window is the same input";
        EXPECT_EQ(with_bos.n_windows, 1);
    }
}

TEST_F(Stories, CutsTextsIntoWindowsThatScoreEveryPosition) {
    const Ids ids = expected_["perplexity"][1]["ids"];
    llm::Engine engine(model_, defaults());
    const llm::Perplexity p = llm::perplexity(engine, ids, {100, std::nullopt});
    EXPECT_EQ(p.n_windows, 2);
    EXPECT_EQ(p.n_tokens, 200);
    const auto first = llm::perplexity(engine, std::span(ids).first(101), {100, std::nullopt});
    const auto second = llm::perplexity(engine, std::span(ids).subspan(100, 101), {100, std::nullopt});
    EXPECT_NEAR(p.nll, (first.nll + second.nll) / 2, 1e-12);
    EXPECT_THROW(llm::perplexity(engine, std::span(ids).first(100), {100, std::nullopt}), ggmlx::Error);
}

TEST_F(Stories, StopsForEachOfItsReasons) {
    llm::EngineOptions options = defaults();
    options.n_ctx = 64;
    llm::Engine engine(model_, options);
    llm::GenerateOptions how;
    how.sampling.temperature = 0;
    const Ids prompt{1};
    const auto run = [&](const llm::GenerateOptions& o, const llm::OnText& on_text = {}) {
        llm::Session session(engine);
        return llm::generate(session, prompt, o, on_text);
    };
    const Ids want = story();

    how.max_tokens = 10;
    EXPECT_EQ(run(how).stop_reason, "length");
    EXPECT_EQ(run(how).ids, Ids(want.begin(), want.begin() + 10));

    how.max_tokens = -1;
    auto full = run(how);
    EXPECT_EQ(full.stop_reason, "context");
    EXPECT_EQ(full.ids, Ids(want.begin(), want.begin() + 64))
        << "one for every token that fits, and one after the last";

    how.stops = {"Lily"};
    const auto stopped = run(how);
    EXPECT_EQ(stopped.stop_reason, "stop");
    EXPECT_TRUE(stopped.text.ends_with("named ")) << stopped.text;

    how.stops.clear();
    int calls = 0;
    const auto cancelled = run(how, [&](std::string_view) { return ++calls < 5; });
    EXPECT_EQ(cancelled.stop_reason, "cancelled");
    EXPECT_EQ(cancelled.ids.size(), 5u);

    how.max_tokens = 0;
    EXPECT_EQ(run(how).stop_reason, "length");
    EXPECT_TRUE(run(how).ids.empty());
}

TEST_F(Stories, StopsAtEosUnlessToldToIgnoreIt) {
    llm::Engine engine(model_, defaults());
    llm::GenerateOptions how;
    how.sampling.temperature = 0;
    const auto run = [&] {
        llm::Session session(engine);
        return llm::generate(session, Ids{1}, how, {});
    };
    const auto ended = run();
    ASSERT_EQ(ended.stop_reason, "eos");
    EXPECT_TRUE(model_.is_eos(ended.ids.back()));
    how.ignore_eos = true;
    how.max_tokens = static_cast<int64_t>(ended.ids.size()) + 3;
    const auto longer = run();
    EXPECT_EQ(longer.stop_reason, "length");
    EXPECT_EQ(Ids(longer.ids.begin(), longer.ids.begin() + static_cast<std::ptrdiff_t>(ended.ids.size())), ended.ids);
}

TEST_F(Stories, StreamsTextThatContinuesThePrompt) {
    llm::Engine engine(model_, defaults());
    llm::Session session(engine);
    llm::GenerateOptions how;
    how.sampling.temperature = 0;
    how.max_tokens = 30;
    std::string streamed;
    const auto prompt = model_.tokenizer().encode("Once upon a");
    const auto result = llm::generate(session, prompt, how, [&](std::string_view text) {
        streamed += text;
        return true;
    });
    EXPECT_EQ(streamed, result.text);
    EXPECT_TRUE(result.text.starts_with(" time, there was")) << result.text;
    EXPECT_EQ(result.timings.prompt_n, static_cast<int64_t>(prompt.size()));
    EXPECT_EQ(result.timings.predicted_n, 30);
}

}  // namespace
}  // namespace e2e
