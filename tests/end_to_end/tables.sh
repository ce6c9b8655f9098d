#!/bin/sh
# Parquet and CSV files have the samples of arrays: the same weights to the bit.
# A defect is refused with its row and column.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

# A sanitizer cannot find the exceptions of a library that is opened late.
[ -z "${SINTER_SANITIZED:-}" ] || exit 77
for candidate in "${SINTER_PYTHON:-}" python3; do
    $candidate -c 'import numpy, duckdb' 2>/dev/null &&
        python=$candidate && break
done
[ -n "${python:-}" ] || exit 77
"$python" "$here/tables.py" library || fail "the library"
"$python" "$here/tables.py" data || fail "data"

# model DATA OUTPUT LOSS
model() {
    cat <<NET
model Table(x: f32[N, 5]) -> f32[N, $2] {
  x |> linear(8) |> relu |> linear($2)
}

train Table {
  data      = $1
  batch     = 40
  epochs    = 2
  loss      = $3
  optimizer = adamw(lr=1e-2)
  eval at end on data.test { metrics = [loss] }
}
NET
}
classes='mean(cross_entropy(output, label))'
order='columns=["a", "b", "c", "whole", "flag"]'
model 'npy("arrays")' 3 "$classes" >arrays.net
model 'table("parquet", label="y")' 3 "$classes" >parquet.net
model "table(\"named\", label=\"kind\", $order)" 3 "$classes" >named.net
model 'npy("targets", targets=true)' 2 'mean(mse(output, label))' >targets.net
prices='table("prices", label=["u", "v"], targets)'
model "$prices" 2 'mean(mse(output, label))' >prices.net

# The library is opened by a table only.
for net in arrays targets parquet named prices; do
    expect 0 "$SINTER" build $net.net -o train_$net
done
expect 0 ./train_arrays --out=run_arrays --quiet
SINTER_DUCKDB='' expect 3 ./train_parquet --out=run_none --quiet
expect_says "a table needs libduckdb.so, which cannot be opened .*SINTER_DUCKDB"
SINTER_DUCKDB=$work/python.s expect 3 ./train_parquet --out=run_none --quiet
expect_says "a table needs $work/python.s, which cannot be opened"
SINTER_DUCKDB=libm.so.6 expect 3 ./train_parquet --out=run_none --quiet
expect_says "needs the function duckdb_library_version, which libm.so.6 does"
export SINTER_DUCKDB="$work/libduckdb.so"
expect 0 "$SINTER" doctor
expect_says '^DuckDB  *[0-9][0-9.]*  /.*duckdb.*so$'

# weights RUN: its tensors, without the header, whose data have another hash.
weights() {
    "$python" - "$(newest "$1")" <<'PYTHON'
import json, sys
content = open(sys.argv[1], "rb").read()
length = int.from_bytes(content[:8], "little")
tensors = json.loads(content[8:8 + length])
tensors.pop("__metadata__")
for name, tensor in sorted(tensors.items()):
    first, last = tensor["data_offsets"]
    print(name, content[8 + length + first:8 + length + last].hex())
PYTHON
}
weights run_arrays >arrays.txt
expect 0 ./train_targets --out=run_targets --quiet
weights run_targets >targets.txt
expect 0 ./train_parquet --out=run_parquet --quiet
weights run_parquet | cmp - arrays.txt || fail "weights of Parquet files"
expect 0 ./train_prices --out=run_prices --quiet
weights run_prices | cmp - targets.txt || fail "weights of targets"
# Names are classes in their order.
for data in named csv "it's [a] * of year=2020"; do
    expect 0 ./train_named --data="$data" --out="run_$data" --quiet
    weights "run_$data" | cmp - arrays.txt || fail "weights of $data"
done
expect 0 "$SINTER" data stats named.net
[ "$(sed -n 's/^    \([a-z]*\) .*/\1/p' out | head -n 3 | xargs)" = \
    "bat cat rat" ] || fail "the names of classes"

# A table of more numbers than a query reads.  Column i is i everywhere, so the
# mean of columns i, i + 10, ... is i + 45.
sed 's/N, 5/N, 10, 10/; s/"parquet"/"wide"/; s/  x |>/  x |> flatten |>/' \
    parquet.net >wide.net
expect 0 "$SINTER" data stats wide.net
expect_says "mean=\[45, 46, 47, 48, 49, 50, 51, 52, 53, 54\], std=\[28.723"

# Predictions take a file, with or without labels; columns are found by name.
expect 0 ./train_arrays --predict arrays/test_x.npy --weights=run_arrays \
    -o want.npy
for file in named/test.parquet csv/test.csv prices/test.parquet; do
    expect 0 ./train_named --predict $file --weights=run_named -o found.npy
    expect_equal want.npy found.npy
done
expect 0 ./train_named --predict named --weights=run_named
expect_says '"class":"cat"'
# Without a list in the model file they have the names of the training data.
for file in named/test.parquet csv/test.csv prices/test.parquet; do
    expect 0 ./train_parquet --predict $file --weights=run_parquet -o found.npy
    expect_equal want.npy found.npy
done
sed '1s/whole/hole/' csv/test.csv >renamed.csv
expect 3 ./train_parquet --predict renamed.csv --weights=run_parquet
expect_says 'renamed.csv has no column "whole"; its columns are '

# Both forms of a table are the same data to a resumed run; other rows are not.
expect 0 ./train_named --out=cut --quiet --steps=7
expect 3 ./train_named --data=one.parquet --validation=20% --resume --out=cut \
    --quiet
expect_says "other data"
expect 0 ./train_named --data=csv --resume --out=cut --quiet
weights cut | cmp - arrays.txt || fail "weights of a resumed run"
expect 3 ./train_named --data=one.parquet --out=one --quiet
expect_says "is no folder with a file for the test: add one, or hold rows out"

# ---- images ----

"$python" "$here/tables.py" pictures || fail "pictures"
cat >pictures.net <<'NET'
model Pictures(image: u8[N, 8, 8, 3]) -> f32[N, 3] {
  image |> normalize([128, 128, 128], [64, 64, 64]) |> flatten |> linear(3)
}

train Pictures {
  data      = image_table("pictures", size=8)
  batch     = 20
  epochs    = 2
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=1e-2)
  eval at end on data.test { metrics = [loss] }
}
NET
expect 0 "$SINTER" build pictures.net -o pictures.trainer
expect 0 ./pictures.trainer --out=run_files --quiet
weights run_files >files.txt
for data in structs/data blobs; do
    expect 0 ./pictures.trainer --data=$data --out="run_${data%/*}" --quiet
    weights "run_${data%/*}" | cmp - files.txt || fail "weights of $data"
done
expect 0 ./pictures.trainer --predict pictures/test7.png --weights=run_files
sed 's/.*"number/"number/' out >file.txt
expect 0 ./pictures.trainer --predict blobs --weights=run_files
sed -n '8s/.*"number/"number/p' out | cmp - file.txt ||
    fail "another prediction"
expect 0 ./pictures.trainer --predict blobs/test/all.parquet \
    --weights=run_files
sed -n '8s/.*"number/"number/p' out | cmp - file.txt ||
    fail "another prediction for one file"
expect 0 ./pictures.trainer --data=structs/data --out=split --quiet \
    --validation=10% --epochs=1

# says FOLDER TEXT
says() {
    expect 3 "$SINTER" data verify pictures.net --data "$1"
    expect_says "$1$2"
}
says bad_no_image '/train.parquet has no column "image" with bytes of image'
says bad_no_label ' has no column label'
says bad_null '/train.parquet: row 4 has no bytes of an image'
says bad_gap "/train.parquet:4.png: column label has ''"
says bad_high ': sample 0 has label 3, but the model has 3 classes'
says bad_broken '/train.parquet:1.jpg: it is no JPEG, PNG or WebP file'

# ---- defects ----

"$python" "$here/tables.py" defects || fail "defects"
sed 's/N, 5/N, 2/; s/"parquet"/"duplicate"/; s/"y"/"kind"/' \
    parquet.net >pair.net

# refuses FOLDER TEXT
refuses() {
    expect 3 "$SINTER" data verify pair.net --data "$1"
    expect_says "$1/$2"
}
refuses gap 'train.parquet: row 5, column "a": there is no value'
refuses csv_gap 'train.csv: row 2, column "b": there is no value'
refuses nan 'train.parquet: row 10, column "b": nan is not a number of type'
refuses large 'train.parquet: row 1, column "a": 1e+300 is not a number of'
refuses text 'train.parquet: row 1, column "b": "v0" is not a number'
refuses late_text 'train.csv: row 30001, column "b": "NA" is not a number'
refuses digits 'train.parquet: column "b" is of type VARCHAR, not numbers'
refuses date 'train.parquet: column "b" is of type DATE, not numbers'
refuses nested 'train.parquet: column "b" is of type STRUCT(.*), not numbers'
refuses list 'train.parquet: column "b" is of type BIGINT\[\], not numbers'
refuses high 'train.parquet: row 4, column "kind": label 3, but'
refuses below 'train.parquet: row 1, column "kind": label -1, but'
refuses fraction 'train.parquet: row 1, column "kind": 0.5 is not a whole'
refuses no_label 'train.parquet: row 4, column "kind": there is no value'
refuses no_name 'train.parquet: row 4, column "kind": there is no value'
refuses names 'train.parquet: column "kind" has more than the 3 clas'
refuses lines 'train.parquet: column "kind" has a class of more than one line'
refuses other_class 'test.parquet: row 1, column "kind": "y" is a class'
refuses other_columns 'test.parquet has no column "b"; its columns are a, c'
refuses three 'train.parquet has 3 columns besides the label, but'
refuses empty 'train.parquet has no rows'
refuses ragged 'train.csv has no column "kind"; its columns are a,b,kind'
refuses latin 'train.csv: .*not utf-8'
refuses escape 'train.csv: row 1, column "\\x1b\[31mb": "\\x1b\[31mx" is'
refuses both 'train.csv and both/train.parquet are for the same set'
refuses short 'train.parquet: .*No magic bytes'
refuses tail 'train.parquet: .*Footer'
refuses magic 'train.parquet: .*magic'
expect 3 "$SINTER" data verify pair.net --data arrays
expect_says "arrays has no .parquet or .csv file for training"
expect 0 "$SINTER" data verify pair.net
expect 0 "$SINTER" data verify pair.net --data types
exit 0
