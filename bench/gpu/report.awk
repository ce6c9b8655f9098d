# Prints the rows of a run as one JSON object or as Markdown tables, with the
# result of each goal first.
#   awk -f report.awk -v form=json|md -v doctor=FILE goals.tsv rows.tsv
# FILE is the output of sinter doctor in that form, if any.  A goal is part and
# name of a row, most or least, a bound and its unit; if a name has several
# rows, the last counts.
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

FNR == NR {
    goals++
    goal_of[goals] = $1
    goal_name[goals] = $2
    goal_most[goals] = $3 == "most"
    goal_bound[goals] = $4
    goal_unit[goals] = $5
    next
}

{
    rows++
    part[rows] = $1
    name[rows] = $2
    value[rows] = $3
    unit[rows] = $4
    note[rows] = $5
    last[$1, $2] = rows
    if ($2 == "status")
        came = came (came == "" ? "" : ", ") $1 " " $3
}

# The value of a goal, "" if not measured.
function measured(i,  row) {
    row = last[goal_of[i], goal_name[i]]
    return row != "" && is_number(value[row]) ? value[row] : ""
}

function met(i,  x) {
    x = measured(i) + 0
    return goal_most[i] ? x <= goal_bound[i] + 0 : x >= goal_bound[i] + 0
}

function with_unit(x, unit) { return unit == "" ? x : x " " unit }

# found BEFORE AFTER: the text of FILE between them.
function found(before, after,  line, any) {
    while ((getline line < doctor) > 0) {
        printf "%s%s\n", any ? "" : before, line
        any = 1
    }
    if (any)
        printf "%s", after
}

function json_row(i) {
    return sprintf("  {\"part\": %s, \"name\": %s, \"value\": %s%s%s}",
        json(part[i]), json(name[i]), json(value[i]),
        unit[i] == "" ? "" : ", \"unit\": " json(unit[i]),
        note[i] == "" ? "" : ", \"note\": " json(note[i]))
}

function json_goal(i,  x) {
    x = measured(i)
    return sprintf("  {\"part\": %s, \"name\": %s, \"%s\": %s%s, \"value\": %s, \"met\": %s}",
        json(goal_of[i]), json(goal_name[i]), goal_most[i] ? "most" : "least",
        goal_bound[i],
        goal_unit[i] == "" ? "" : ", \"unit\": " json(goal_unit[i]),
        x == "" ? "null" : x, x == "" ? "null" : met(i) ? "true" : "false")
}

function print_json(  i) {
    print "{\"schema\": 1, \"rows\": ["
    for (i = 1; i <= rows; i++)
        print json_row(i) (i < rows ? "," : "")
    print "],\n\"goals\": ["
    for (i = 1; i <= goals; i++)
        print json_goal(i) (i < goals ? "," : "")
    printf "]"
    found(",\n\"doctor\": ", "")
    print "}"
}

# machine NAME OTHERWISE
function machine(name, otherwise,  row) {
    row = last["machine", name]
    return row == "" ? otherwise : value[row]
}

function print_goals(  i, x) {
    print "## goals\n\n| goal | | measured | |\n|---|---|---|---|"
    for (i = 1; i <= goals; i++) {
        x = measured(i)
        printf "| %s: %s | at %s %s | %s | %s |\n", goal_of[i], \
            text(goal_name[i]), goal_most[i] ? "most" : "least", \
            with_unit(goal_bound[i], goal_unit[i]), \
            x == "" ? "" : with_unit(x, goal_unit[i]), \
            x == "" ? "not measured" : met(i) ? "met" : "**missed**"
    }
    print ""
}

function print_md(  i) {
    print "# Results on a GPU\n"
    printf "%s, at commit %s, %s.\n", machine("name", "No GPU that nvidia-smi knows"), \
        machine("commit", "unknown"), machine("date", "no date")
    print "By `bench/gpu.sh`; `log` has the output of the parts.\n"
    if (came != "")
        print "Parts: " came ".\n"
    print_goals()
    found("```\n", "```\n\n")
    for (i = 1; i <= rows; i++) {
        if (part[i] != part[i - 1])
            printf "%s## %s\n\n| name | value | unit | note |\n|---|---|---|---|\n", \
                i == 1 ? "" : "\n", part[i]
        printf "| %s | %s | %s | %s |\n", text(name[i]), text(value[i]), \
            text(unit[i]), text(note[i])
    }
}

END {
    if (form == "json")
        print_json()
    else
        print_md()
}
