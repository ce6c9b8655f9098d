#!/bin/sh
# Models say where they come from: the header of each names its recipe and what
# was measured, or why nothing was, and its figures are those of `sinter check`.
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

for model in models/*.net; do
    name=$(basename "$model" .net)
    report=tests/golden/models/$name.report
    header=$(sed -n '/^#/!q; s/^# *//p' "$model" | tr '\n' ' ' | tr -s ' ')

    case $header in
    "$name.net — "*" Recipe "*" Measured "*) ;;
    *) complain "$model: no header with a title, Recipe and Measured" ;;
    esac
    case ${header#* Measured } in
    *docs/results.md* | "not measured here: "*) ;;
    *) complain "$model: neither measured nor why not" ;;
    esac

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
