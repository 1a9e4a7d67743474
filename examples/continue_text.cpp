// The model runtime from a program: open a .ggmx file, make an engine, and let two sessions, one after the other,
// continue the same text, the first greedily, the second with dice.
//
//     continue_text MODEL.ggmx ["Once upon a time"]

#include <cstdio>
#include <string>

#include "src/model.h"
#include "src/session/engine.h"
#include "src/session/generate.h"
#include "src/session/session.h"

using namespace llm;

namespace {

void continue_text(Engine& engine, const std::string& text, float temperature) {
    Session session(engine);
    GenerateOptions options;
    options.max_tokens = 60;
    options.sampling.temperature = temperature;
    options.sampling.seed = 7;
    std::printf("--- temperature %.1f\n%s", double{temperature}, text.c_str());
    const Generated generated =
        generate(session, engine.model().tokenizer().encode(text), options, [](std::string_view piece) {
            std::fwrite(piece.data(), 1, piece.size(), stdout);
            std::fflush(stdout);
            return true;  // false would stop it
        });
    std::printf("\n--- %zu tokens, stopped by %s\n", generated.ids.size(), generated.stop_reason.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: continue_text MODEL.ggmx [TEXT]\n");
        return 2;
    }
    try {
        const Model model = Model::open(argv[1]);
        Engine engine(model, EngineOptions{});
        for (float temperature : {0.0f, 0.8f})
            continue_text(engine, argc > 2 ? argv[2] : "Once upon a time", temperature);
    } catch (const ggmlx::Error& error) {
        std::fprintf(stderr, "continue_text: %s\n", error.what());
        return 1;
    }
}
