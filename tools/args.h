#pragma once
// The command line of one subcommand: options, flags, help, and errors that tell what to type instead.
//
// Written as users of llama.cpp and of GNU tools expect: `-x value`, `-x=value`, `--long value`, `--long=value`, and
// aliases of several letters behind one dash (`-ngl 99`). Every long option can be set by the environment variable
// GGMLX_<LONG_NAME> (GGMLX_CTX_SIZE=4096) or in a file given with --config; the command line wins, then the
// environment.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

/// The command line was wrong: exit code 2, and a hint to --help.
class UsageError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Inclusive.
struct IntRange {
    int64_t min = std::numeric_limits<int64_t>::min(), max = std::numeric_limits<int64_t>::max();
};
struct RealRange {
    double min = -std::numeric_limits<double>::infinity(), max = std::numeric_limits<double>::infinity();
};

/// Options that every command has.
struct Common {
    bool json = false;     ///< the result as one JSON document on stdout
    bool quiet = false;    ///< no progress, no notes
    bool verbose = false;  ///< more notes
};

/// Declare everything, then parse() once. Names are written "-c,--ctx-size": short, several letters (an alias) and long
/// names in one list; the first long name also names the environment variable. The variables must outlive parse(); they
/// keep their values unless the user sets them.
class Args {
  public:
    /// examples: whole lines, shown at the end of --help.
    Args(std::string_view command, std::string_view summary, std::string_view examples);
    ~Args();
    Args(const Args&) = delete;
    Args& operator=(const Args&) = delete;

    void positional(std::string_view name, std::string& value, std::string_view help);
    /// The model: the first argument, or -m, --model, or GGMLX_MODEL. parse() demands it.
    void model(std::string& path, std::string_view what = "the model, a .ggmx file");

    void flag(std::string_view names, bool& value, std::string_view help);
    /// An option of another program that means nothing here: accepted, not shown in --help; `given` tells whether it
    /// was there.
    void foreign(std::string_view names, bool takes_value, bool& given);
    void option(std::string_view names, std::string& value, std::string_view type, std::string_view help);
    /// Repeatable; each use appends.
    void option(std::string_view names, std::vector<std::string>& values, std::string_view type, std::string_view help);
    void option(std::string_view names, int64_t& value, IntRange range, std::string_view help);
    void option(std::string_view names, std::optional<int64_t>& value, IntRange range, std::string_view help);
    void option(std::string_view names, double& value, RealRange range, std::string_view help);
    void option(std::string_view names, std::optional<double>& value, RealRange range, std::string_view help);
    /// Bytes, with K, M, G or T (powers of 1024) behind the number.
    void size(std::string_view names, std::optional<uint64_t>& bytes, std::string_view help);
    void choice(std::string_view names, std::string& value, std::vector<std::string> allowed, std::string_view help);
    /// --json, -q/--quiet and -v/--verbose.
    void common(Common& common);

    /// arguments: what follows the command's name. Returns false if help was asked for and printed. Throws UsageError.
    bool parse(std::span<const std::string> arguments);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// "24G" -> 25769803776; also fractions ("1.5G") and a B behind ("512MB"). Throws UsageError that names `option`.
uint64_t parse_size(std::string_view option, std::string_view text);

/// 1536 -> "1.50 KiB": for people; three significant digits.
std::string human_bytes(uint64_t bytes);

}  // namespace cli
