#!/bin/sh
# Runs the random programs of many seeds at low priority, 500 at a time, and
# adds a line of counts for each to a file, and what failed.
# usage: campaign.sh RANDOM FIRST LAST FILE
set -eu
random=$1 first=$2 last=$3 file=$4
while [ "$first" -lt "$last" ]; do
    nice -n 10 "$random" "$first" 500 >"$file.part" 2>&1 || true
    grep -v '^[0-9]* programs and' "$file.part" >>"$file" || true
    echo "seeds $first to $((first + 499)): $(tail -n 1 "$file.part")" >>"$file"
    rm "$file.part"
    first=$((first + 500))
done
