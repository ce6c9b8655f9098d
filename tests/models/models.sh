#!/bin/sh
# Models say where they come from: the header of each names its recipe and what
# was measured and how, its figures are those of `sinter check`, and what was
# measured is in docs/results.md, with the settings that the command has.
set -u

cd "$SINTER_SOURCE" || exit 1
failed=0

complain() {
    echo "$*" >&2
    failed=1
}

# The number before a word of the header, without commas.
number_before() {
    echo "$header" | grep -oE "[0-9,]+ $1" | head -n 1 | tr -dc '0-9'
}

# The numbers that a line sets, in its order.
settings() {
    echo "$1" | grep -oE '[a-z]+=[0-9.]*[0-9]' | tr '\n' ' '
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -n '/^## The models, reduced/,/^## [^T]/p' docs/results.md >"$work/rows"

for model in models/*.net; do
    name=$(basename "$model" .net)
    report=tests/golden/models/$name.report
    header=$(sed -n '/^#/!q; s/^# *//p' "$model" | tr '\n' ' ' | tr -s ' ')

    case $header in
    "$name.net — "*" Recipe "*" Measured "*) ;;
    *) complain "$model: no header with a title, Recipe and Measured" ;;
    esac
    if row=$(grep "^| $name |" "$work/rows"); then
        result=$(echo "$row" | sed 's/ |$//; s/.*| //')
        case ${header#* Measured } in
        "$result "*"bench/reduced/run.sh SINTER DIR $name"*) ;;
        *) complain "$model: measured is '$result', by a command" ;;
        esac
        [ "$(settings "$row")" = \
            "$(settings "$(grep "^$name |" bench/reduced/runs)")" ] ||
            complain "$model: docs/results.md has other settings than runs"
    else
        grep -q "^$name |" bench/reduced/runs &&
            complain "$model: docs/results.md does not have its run"
        case ${header#* Measured } in
        [0-9]*docs/results.md* | [0-9]*"ctest -V -R losses_$name."*) ;;
        *) complain "$model: not measured" ;;
        esac
    fi

    said=$(number_before parameters)
    is=$(sed -n 's/^parameters *//p' "$report")
    # What a network for other data would have, the header says in parts.
    [ -z "$said" ] || [ "$said" = "$is" ] || case $header in
    *"$(echo "$said" | sed 's/\(...\)$/,\1/') parameters and the "*) ;;
    *) complain "$model: $is parameters, not $said" ;;
    esac
    said=$(number_before "Mflop forward")
    is=$(sed -n 's/^flops, forward *//p' "$report")
    [ -z "$said" ] || case $is in
    "$said.0 M "* | "$(echo "$said" | awk '{ printf "%.1f", $1 / 1000 }') G "*) ;;
    *) complain "$model: $is, not $said Mflop" ;;
    esac
done

exit $failed
