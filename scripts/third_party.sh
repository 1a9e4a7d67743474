#!/usr/bin/env bash
# Carries libraries that a distribution lacks: unpacks Debian packages under third_party/debian, where CMake looks when
# pkg-config finds nothing. Needs no root. Usage:
#   scripts/third_party.sh [PACKAGE...]      downloads them with apt-get (default: all that can be carried)
#   scripts/third_party.sh --from FOLDER     unpacks the .deb files that lie there, on a machine without a package registry
# The archives are position-independent and need nothing newer than GLIBC 2.14, so the folder may also be copied from a
# Debian 12 machine to another one.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

TARGET="$ROOT/third_party/debian"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [[ "${1:-}" == --from ]]; then
    [[ -d "${2:-}" ]] || die "third_party: --from needs a folder with .deb files"
    cp "$2"/*.deb "$work"
else
    (( $# > 0 )) || set -- libpcre2-dev libutf8proc-dev libxxhash-dev
    command -v apt-get >/dev/null || die "third_party: no apt-get here. On a Debian 12 machine run" \
        "    apt-get download $*" "and here: scripts/third_party.sh --from THE_FOLDER"
    (cd "$work" && apt-get download "$@") || die "third_party: apt could not download $*." \
        "On a Debian 12 machine run 'apt-get download $*', copy the files, and here: scripts/third_party.sh --from THE_FOLDER"
fi

for deb in "$work"/*.deb; do dpkg -x "$deb" "$work/root"; done
mkdir -p "$TARGET/include" "$TARGET/lib" "$TARGET/copyright"
for header in "$work"/root/usr/include/*; do cp -R "$header" "$TARGET/include/"; done
for library in libpcre2-8.a libutf8proc.a; do
    find "$work/root/usr/lib" -name "$library" -exec cp {} "$TARGET/lib/" \;
done
for doc in "$work"/root/usr/share/doc/*/; do
    if [[ -e "$doc/copyright" ]]; then cp "$doc/copyright" "$TARGET/copyright/$(basename "$doc")"; fi
done
echo "third_party: unpacked into third_party/debian"
