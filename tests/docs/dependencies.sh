#!/bin/sh
# docs/dependencies.md has every package that the scripts install, everything
# that CMake looks for, every library that the runtime opens, and all that a
# trainer is linked with; and it has no package that nothing installs.
. "$SINTER_SOURCE/tests/end_to_end/folder.sh"
cd "$SINTER_SOURCE" || exit 1
page=docs/dependencies.md

# has NAME...: each name is in backticks in the page.
has() {
    for name in "$@"; do
        grep -qF -e "\`$name\`" "$page" || fail "$page: no \`$name\`"
    done
}

# The words of all calls of .ci/packages in a script.
installed_by() {
    sed -e ':more' -e '/\\$/{N;s/\\\n//;bmore' -e '}' "$1" |
        sed -n 's/.*\.ci\/packages" //p' | sed 's/||.*//'
}
packages="$(installed_by quickstart) $(installed_by run-tests)"
# shellcheck disable=SC2086 # words
[ "$(echo $packages | wc -w)" -gt 15 ] || fail "packages: $packages"
# shellcheck disable=SC2086
has $packages

sought=$(find CMakeLists.txt tests -name CMakeLists.txt -exec cat {} + |
    grep -oE '(find_(package|path|library|program)|pkg_check_modules)\([A-Za-z_]+' |
    sed 's/.*(//; s/^DNNL_.*/dnnl/; s/^PCRE.*/libpcre2-dev/' | sort -u)
[ "$(echo "$sought" | wc -l)" -gt 10 ] || fail "sought: $sought"
# shellcheck disable=SC2086
has $sought

opened=$(grep -rhoE '"lib[A-Za-z0-9]+\.so[.0-9]*' runtime | tr -d '"' | sort -u)
[ "$(echo "$opened" | wc -l)" -gt 8 ] || fail "opened: $opened"
for library in $opened; do
    stem=${library%%.so*}
    name=$(echo "$stem" | sed 's/[0-9]*$//')
    grep -qE "\`($library|$stem\.so)\`|^\| $name" "$page" ||
        fail "$page: no $library"
done

for package in $(grep -oE '`(lib[a-z0-9-]+|python3-[a-z]+)`' "$page" |
    tr -d '`' | sort -u); do
    case " $packages python3-torch " in
    *" $package "*) ;;
    *) fail "$page: nothing installs $package" ;;
    esac
done
exit $failed
