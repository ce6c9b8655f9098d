#!/bin/sh
# A folder that includes what it may not depend on does not compile, the folders
# of runtime/cuda include headers of earlier ones only, and subfolders form no
# cycle.
set -u

failed=0

# includes FOLDER HEADER: whether a file of the folder can include it.
includes() {
    echo "#include <$2>" |
        "$CC" -x c -fsyntax-only -I"$SINTER_VIEW/$1" - 2>/dev/null
}

# sees FOLDER HEADER... -- HEADER...: may include the first, not the second.
sees() {
    folder=$1
    shift
    expect=yes
    for header in "$@"; do
        if [ "$header" = -- ]; then
            expect=no
            continue
        fi
        found=no
        includes "$folder" "$header" && found=yes
        [ $found = $expect ] && continue
        echo "$folder: can include $header: $found, should be $expect"
        failed=1
    done
}

base=base/text.h
ir='ir/ir.h ir/program.h'
plan='passes/plan/group.h passes/plan/merged_launch.h'
private='ir/shape/shape.h passes/gradients.h frontend/text/lex.h runtime/runtime.h'
frontend=frontend/frontend.h
passes=passes/passes.h
codegen=codegen/codegen.h
runtime=runtime/rt.h

# shellcheck disable=SC2086 # lists of headers
{
    sees base $base -- $ir $plan $frontend $passes $codegen $runtime
    sees ir $base $ir ir/shape/shape.h -- $plan $frontend $passes $codegen $runtime
    sees frontend $base $ir $frontend -- $plan $passes $codegen $runtime ir/shape/shape.h
    sees passes $base $ir $plan $passes -- $frontend $codegen $runtime ir/shape/shape.h
    sees codegen $base $ir $plan $codegen -- $frontend $passes $runtime $private
    sees replay $base $ir runtime/replay/replay.h -- $plan $frontend $passes $runtime $private
    sees runtime $runtime $base base/exits.h base/glob.h base/half.h \
        base/protobuf.h runtime/replay/replay.h -- $ir $plan $frontend $passes $codegen
    sees tools $base $ir $plan $frontend $passes $codegen $runtime \
        runtime/machine.h runtime/machine_code.h -- ir/shape/shape.h \
        passes/gradients.h frontend/text/lex.h runtime/data/data.h \
        runtime/cuda/driver/driver.h
}

# Only main.c stands above the devices.
users=$(cd "$SINTER_SOURCE/runtime" &&
    find . -name '*.[ch]' ! -path './cuda/*' -exec grep -l 'runtime/cuda/' {} +)
[ "$users" = ./session/main.c ] || {
    echo "runtime/cuda is included by: $users"
    failed=1
}
later='tune launch libraries memory kernels'
for folder in driver kernels memory libraries launch; do
    for above in $later; do
        [ "$above" = $folder ] && break
        grep -l "cuda/$above/" "$SINTER_SOURCE/runtime/cuda/$folder"/*.[ch] && {
            echo "runtime/cuda/$folder includes headers of $above"
            failed=1
        }
    done
done
python3 "$SINTER_SOURCE/tests/tree/cycles.py" "${SINTER_VIEW%/view}" || failed=1
exit $failed
