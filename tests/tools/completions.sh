#!/bin/sh
# Each option of --help has a completion in bash and an entry in its command's
# manual page.
set -u

. "$SINTER_SOURCE/tests/end_to_end/folder.sh"

# completed WORD...: what bash completes the last word to.
completed() {
    bash -c '. "$0"; COMP_WORDS=("$SINTER" "$@"); COMP_CWORD=$#; _sinter
        echo "${COMPREPLY[@]}"' "$SINTER_SOURCE/tools/completions/sinter" "$@"
}

# completes TEXT WORD...
completes() {
    text=$1
    shift
    [ "$(completed "$@")" = "$text" ] ||
        fail "sinter $*: $(completed "$@"), not $text"
}

options=0
commands=$("$SINTER" --help | sed -n 's/^  \([a-z]*\)  *[A-Z].*/\1/p' |
    grep -vx version)
completes "$(echo $commands)" ""
"$SINTER" manual pages || fail "no pages"
for command in $commands; do
    "$SINTER" "$command" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p' >help
    completed "$command" - | tr ' ' '\n' | sed 's/=$//' >bash
    tr -d '\\' <"pages/sinter-$command.1" | sed -n 's/^\.B \(--[a-z-]*\).*/\1/p' \
        >manual
    while read -r option; do
        options=$((options + 1))
        for by in bash manual; do
            grep -qxF -e "$option" $by || fail "$by: $command has no $option"
        done
    done <help
done
[ $options -ge 200 ] || fail "only $options options were seen"
if command -v man >/dev/null; then
    for page in pages/*; do
        LC_ALL=C man --warnings -l "$page" 2>warnings >page
        [ ! -s warnings ] || fail "$page: $(cat warnings)"
    done
fi

completes "check" chec
completes "--target=" check --ta
completes "--target=" check --json --ta
completes "cuda host" check --target = ""
completes "cuda host" check --target =
completes "host" check --target = ho
completes "host" check --target ho
completes "--target=host" check --target=ho
completes "--epochs=" train --ep
completes "--resume" train x.net --resu
completes "graph grad" show gra
completes "" check mod
completes "" chek --target
expect 0 "--json	print one JSON object" complete -- check --js
expect 2 "complete: unexpected 'check'" complete check
expect 2 "manual needs DIR" manual
expect 74 "nowhere/man" manual nowhere/man

exit $failed
