# shellcheck shell=bash
# What the scripts of this folder share; sourced, not run. Sets ROOT and moves there, so that a script works from any folder.
set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$ROOT"

# heading TEXT: what comes now, with the seconds since the script began.
heading() { printf '\n== %s  [%d s]\n' "$*" "$SECONDS"; }

# show COMMAND...: prints the command as a reader would type it, then runs it.
show() {
    printf '\n$ %s\n' "$(shell_words "$@")"
    "$@"
}

# shell_words WORD...: the words in one line, quoted only where a shell needs it.
shell_words() {
    local word out=()
    for word in "$@"; do
        if [[ "$word" =~ ^[A-Za-z0-9_./:=@%+,-]+$ ]]; then out+=("$word"); else out+=("'${word//\'/\'\\\'\'}'"); fi
    done
    printf '%s' "${out[*]}"
}

# die TEXT...: one line per argument to stderr, exit 1.
die() {
    printf '%s\n' "$@" >&2
    exit 1
}

# build_jobs: compilers to run at once. One per processor, and no more than one per 1.5 GB of memory that is free and
# that the cgroup allows, so that a small machine does not swap or lose a compiler to the OOM killer.
build_jobs() {
    local cpus memory_mb limit
    cpus=$(nproc)
    memory_mb=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
    limit=$(cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null | head -n 1 || true)
    if [[ "$limit" =~ ^[0-9]{1,15}$ ]] && (( limit / 1048576 < memory_mb )); then memory_mb=$(( limit / 1048576 )); fi
    local jobs=$(( memory_mb / 1536 ))
    if (( jobs > cpus )); then jobs=$cpus; fi
    echo $(( jobs > 1 ? jobs : 1 ))
}

# build PRESET [TARGET...]: configures and builds into build/PRESET; everything if no target is named.
build() {
    local preset="$1"
    shift
    show cmake --preset "$preset" &&
        show cmake --build --preset "$preset" --parallel "$(build_jobs)" ${1:+--target "$@"}
}

# tracked_files SUFFIX...: the repository's own files with one of these suffixes, without what is built or unpacked into it.
# A tree without git (an archive) is searched instead.
tracked_files() {
    local pattern
    pattern="\.($(IFS='|' && echo "$*"))\$"
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard
    else
        find . -path ./build -prune -o -path ./third_party -prune -o -type f -printf '%P\n'
    fi | grep -E "$pattern" | sort
}
