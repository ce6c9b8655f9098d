#!/bin/sh
# What the documents point at is there: links to files and headings, and files
# that are named in backticks; a table whose last column is called `test` names
# for each row tests or golden files that are there.
set -u

cd "$SINTER_SOURCE" || exit 1
failed=0
work=$(mktemp -d "${TMPDIR:-/tmp}/links-XXXXXX")
trap 'rm -rf "$work"' EXIT

complain() {
    echo "$*" >&2
    failed=1
}

# Headings as links spell them.
anchors() {
    sed -n 's/^#\{1,6\} //p' "$1" | tr '[:upper:]' '[:lower:]' |
        sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# Text between $2 and $3, one on a line.
between() {
    awk -v open="$2" -v close_="$3" '
    {
        while ((i = index($0, open)) > 0) {
            $0 = substr($0, i + length(open))
            if ((j = index($0, close_)) == 0)
                break
            print substr($0, 1, j - 1)
            $0 = substr($0, j + length(close_))
        }
    }' "$1"
}

find tests -name '*.c' -exec grep -ho 'START_TEST([a-z0-9_A-Z]*)' {} + >"$work/cases"
for document in *.md docs/*.md tests/pytorch/*.md; do
    folder=$(dirname "$document")
    between "$document" "](" ")" >"$work/links"
    while read -r link; do
        case $link in http*) continue ;; esac
        file=${link%%#*}
        target=$folder/$file
        [ -n "$file" ] || target=$document
        [ -e "$target" ] || complain "$document: no file $link"
        case $link in
        *'#'*) anchors "$target" | grep -qxF -e "${link#*#}" ||
            complain "$document: no heading $link" ;;
        esac
    done <"$work/links"

    # FOLDER/NAME.KIND, where there is such a folder; NAME in capitals stands
    # for any.
    between "$document" '`' '`' |
        grep -E '^[a-z_]+(/[a-z_0-9]+)*\.[a-z]+$' >"$work/files"
    while read -r file; do
        [ ! -d "${file%%/*}" ] || [ -e "$file" ] ||
            complain "$document: no file $file"
    done <"$work/files"

    awk -F'|' '
    /^\|/ {
        if (!inside)
            named = $(NF - 1) ~ /^ *test *$/
        else if (named && $0 !~ /^[-|]+$/)
            print $(NF - 1)
        inside = 1
        next
    }
    { inside = 0 }' "$document" >"$work/cells"
    while read -r cell; do
        echo "$cell" >"$work/cell"
        between "$work/cell" '`' '`' >"$work/tests"
        [ -s "$work/tests" ] || complain "$document: a row without a test"
        while read -r name; do
            case $name in
            */*) [ -e "$name" ] ;;
            *) grep -qxF -e "START_TEST($name)" "$work/cases" ;;
            esac || complain "$document: no test $name"
        done <"$work/tests"
    done <"$work/cells"
done

# Names that tables of the sources give, and those that docs/ir.md has in the
# rows behind a heading.
same_names() {
    awk -v heading="$2" '
    index($0, heading) == 1 { inside = 1; next }
    inside && !/^\|/ { exit }
    inside && !/^\|---/ { print }' docs/ir.md >"$work/rows"
    $3 <"$work/rows" >"$work/told"
    diff "$work/$1" "$work/told" >&2 || complain "docs/ir.md: other $1"
}
first_column() {
    cut -d'|' -f2 | tr -d ' `'
}
all_in_backticks() {
    grep -o '`[a-z_]*`' | tr -d '`' | sort
}
sed -n 's/^    {"\([a-z_]*\)", *pass_.*/\1/p' passes/pipeline.c >"$work/passes"
same_names passes "| pass | needs" first_column
sed -n 's/^ATTR(\([a-z_]*\),.*/\1/p' ir/attrs.def | sort >"$work/attributes"
same_names attributes "| kind | attributes" all_in_backticks
sed -n 's/^REASON(\([a-z_]*\),.*/\1/p' ir/reasons.def | sort >"$work/reasons"
same_names reasons "| reason | says" all_in_backticks

# Words in capitals of the kernels' text: constants of sizes have one letter.
sed -n '/^## 9/,$p' docs/ir.md | grep -o '\b[A-Z][A-Z_]\+\b' | sort -u >"$work/explained"
cat tests/golden/kernels/*.cu | sed 's,//.*,,' | grep -o '\b[A-Z][A-Z_]\+\b' |
    sort -u >"$work/words"
unknown=$(comm -23 "$work/words" "$work/explained")
[ -z "$unknown" ] || complain "docs/ir.md, section 9, does not explain: $unknown"

exit $failed
