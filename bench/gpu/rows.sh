# shellcheck shell=sh
# Sourced by the parts: their results, as rows of a table.  Tabs separate the
# fields: part, name, value, unit, note.

row() {
    printf '%s\t%s\t%s\t%s\t%s\n' "$PART" "$1" "$2" "${3:-}" "${4:-}" >>"$ROWS"
}

# not_here REASON: ends a part that is impossible on this machine.
not_here() {
    echo "$*"
    exit 77
}

# median: of the numbers on stdin.
median() {
    sort -g | awk '
        { x[NR] = $1 }
        END {
            if (NR == 0)
                exit 1
            print NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2
        }'
}

# ratio A B
ratio() {
    awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.3f", a / b }'
}
