# The rows of a run as one JSON object or as tables of Markdown.
#   awk -f report.awk -v form=json|md -v doctor=FILE rows.tsv
# FILE is what sinter doctor has found, in that form, if it is there.
BEGIN { FS = "\t" }

function is_number(x) { return x ~ /^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$/ }

function json(x) {
    if (is_number(x))
        return x
    gsub(/\\/, "\\\\", x)
    gsub(/"/, "\\\"", x)
    gsub(/[\001-\037]/, " ", x)
    return "\"" x "\""
}

function text(x) {
    gsub(/\|/, "\\|", x)
    return x
}

function object(  line) {
    line = "{\"part\": " json($1) ", \"name\": " json($2) ", \"value\": " \
        json($3)
    if ($4 != "")
        line = line ", \"unit\": " json($4)
    if ($5 != "")
        line = line ", \"note\": " json($5 "")
    return line "}"
}

# found BEFORE AFTER: what is in FILE, between these.
function found(before, after,  line, any) {
    while ((getline line < doctor) > 0) {
        printf "%s%s\n", any ? "" : before, line
        any = 1
    }
    if (any)
        printf "%s", after
}

form == "json" {
    printf "%s  %s", NR == 1 ? "{\"schema\": 1, \"rows\": [\n" : ",\n", \
        object()
}

form == "md" && NR == 1 {
    print "# What a GPU has told\n"
    print "By `bench/gpu.sh`; what the parts have said is in `log`.\n"
    found("```\n", "```\n\n")
}

form == "md" && $1 != part {
    printf "%s## %s\n\n| | | | |\n|---|---|---|---|\n", \
        part == "" ? "" : "\n", $1
    part = $1
}

form == "md" {
    printf "| %s | %s | %s | %s |\n", text($2), text($3), text($4), text($5)
}

END {
    if (form == "json") {
        printf "\n]"
        found(",\n\"doctor\": ", "")
        print "}"
    }
}
