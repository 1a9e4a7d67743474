#include <csignal>
#include <string>
#include <vector>

#include "tools/program.h"

int main(int argc, char** argv) {
    // A closed pipe and a file-size limit then show as failed writes, which are reported and cleaned up after.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    return cli::run_program(arguments);
}
