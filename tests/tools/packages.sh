#!/bin/sh
# tools/packages: the image is built with the packages of quickstart, and has
# those that the Debian package names; the flake has this version.
. "$SINTER_SOURCE/tests/end_to_end/folder.sh"
cd "$SINTER_SOURCE" || exit 1

# The words of all lines, sorted.
sorted() {
    tr -s ' ,\\' '\n' | sed '/^$/d' | sort
}

# image NUMBER: the packages of that stage of the image.
image() {
    awk -v stage="$1" '/^FROM/ { at++ }
        at == stage && /&&/ { inside = 0 }
        inside
        at == stage && /apt-get install/ { inside = 1 }' \
        tools/packages/Dockerfile | sorted
}

# The calls of .ci/packages in quickstart.
quickstart() {
    sed -n '/\.ci\/packages/,/[^\\]$/p' quickstart |
        sed 's/.*\.ci\/packages"//' | sorted
}

# The packages that CPack writes, the first of alternatives.
debian() {
    sed -n '/CPACK_DEBIAN_PACKAGE_\(DEPENDS\|RECOMMENDS\)/,/)$/p' \
        CMakeLists.txt | sed 's/.*DEPENDS//; s/| [a-z-]*//; s/set(.*//' |
        tr -d '")' | sorted
}

# same NAME LIST LIST
same() {
    [ "$(echo "$2" | wc -w)" -gt 5 ] || fail "$1: only $2"
    [ "$2" = "$3" ] || fail "$1 has not the packages of the image:
$2
--
$3"
}
same quickstart "$(quickstart)" "$(image 1)"
same "the Debian package" "$(debian)" "$(image 2)"

version=$("$SINTER" version | cut -d ' ' -f 2)
grep -q "version = \"$version\";" tools/packages/flake.nix ||
    fail "tools/packages/flake.nix is not of version $version"
# Linters, where they are installed.
PATH=$PATH:$(dirname "${SINTER_PYTHON:-python3}")
command -v nix-instantiate >/dev/null &&
    ! nix-instantiate --parse tools/packages/flake.nix >/dev/null &&
    fail "tools/packages/flake.nix"
command -v hadolint >/dev/null && ! hadolint tools/packages/Dockerfile &&
    fail "tools/packages/Dockerfile"
exit $failed
