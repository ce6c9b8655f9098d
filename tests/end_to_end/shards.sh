#!/bin/sh
# Shards of a webdataset have the images of an image folder: the same weights to
# the bit, from archives of each form that Python's tarfile writes.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
. "$SINTER_SOURCE/tests/end_to_end/image_model.sh"

python=
for candidate in python3 /usr/bin/python3; do
    $candidate -c 'import numpy, PIL' 2>/dev/null && python=$candidate && break
done
[ -n "$python" ] || exit 77
"$python" - <<'PYTHON' || fail "data"
import io
import os
import tarfile
import numpy as np
from PIL import Image

random = np.random.default_rng(0)
classes = ["ant", "cat", "dog"]
suffix = ["png", "jpg", "webp"]
members = {"train": [], "test": []}
for part, count in ("train", 7), ("test", 3):
    for label, name in enumerate(classes):
        folder = f"images/{part}/{name}"
        os.makedirs(folder)
        for i in range(count):
            path = f"{folder}/{i}.{suffix[i % 3]}"
            pixels = random.integers(0, 80, (20, 24 + i, 3)) + 80 * label
            Image.fromarray(pixels.astype(np.uint8)).save(path)
            with open(path, "rb") as f:
                members[part].append((f"{name}/{i}.{path[-4:].strip('.')}",
                                      f.read(), label))

def add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))

def write(folder, form, prefix, shards):
    os.makedirs(folder)
    for part, all in members.items():
        each = -(-len(all) // shards)
        for k in range(shards):
            path = f"{folder}/in-{part}-{k:06d}.tar"
            with tarfile.open(path, "w", format=form) as tar:
                for name, data, label in all[k * each:(k + 1) * each]:
                    key, end = (prefix + name).rsplit(".", 1)
                    add(tar, f"{key}.cls", str(label).encode())
                    add(tar, f"{key}.{end}", data)
    with open(f"{folder}/classes.txt", "w") as f:
        f.writelines(name + "\n" for name in classes)

write("ustar", tarfile.USTAR_FORMAT, "", 1)
write("gnu", tarfile.GNU_FORMAT, "k" * 120 + "/", 3)
write("pax", tarfile.PAX_FORMAT, "\u00e9" * 120 + "/", 2)
PYTHON

model 'image_folder("images", size=16)' >folder.net
model 'webdataset("ustar", size=16)' >shards.net
expect 0 "$SINTER" build folder.net -o folder
expect 0 "$SINTER" build shards.net -o shards

# weights RUN TO: the parameters of its newest checkpoint.
weights() {
    for name in linear_1.weight linear_1.bias; do
        tensor "$(newest "$1")" $name
    done >"$2"
    [ -s "$2" ] || fail "$1 has no weights"
}
expect 0 ./folder --device=host --quiet --out=folder.run
weights folder.run wanted
for form in ustar gnu pax; do
    expect 0 ./shards --device=host --quiet --data=$form --out=$form.run \
        --threads=3
    weights $form.run found
    expect_equal found wanted
done

# Rows of Parquet, in the form of Hugging Face's datasets.
if "$python" -c 'import pyarrow' 2>/dev/null; then
    "$python" - <<'PYTHON' || fail "Parquet"
import glob
import json
import os
import pyarrow
import pyarrow.parquet

names = ["ant", "cat", "dog"]
for part in "train", "test":
    rows = [{"image": {"bytes": open(path, "rb").read(), "path": path},
             "label": label}
            for label, name in enumerate(names)
            for path in sorted(glob.glob(f"images/{part}/{name}/*"))]
    form = {"info": {"features": {"label": {"names": names,
                                            "_type": "ClassLabel"}}}}
    for k, some in enumerate((rows[:5], rows[5:])):
        table = pyarrow.Table.from_pylist(some).replace_schema_metadata(
            {"huggingface": json.dumps(form)})
        pyarrow.parquet.write_table(table, f"{part}-{k}.parquet")
PYTHON
    for part in train test; do
        expect 0 "$python" "$SINTER_SOURCE/docs/examples/from_parquet.py" \
            parquet $part $part-*.parquet
    done
    expect_equal parquet/classes.txt ustar/classes.txt
    expect 0 ./shards --device=host --quiet --data=parquet --out=parquet.run
    weights parquet.run found
    expect_equal found wanted
fi

# Samples are held out, and a run is resumed, as with files.
for name in folder shards; do
    expect 0 ./$name --device=host --quiet --validation=20% --steps=5 \
        --out=$name.first
    expect 0 ./$name --device=host --quiet --validation=20% --out=$name.held \
        --resume="$(newest $name.first)"
    weights $name.held $name.weights
done
expect_equal shards.weights folder.weights
expect 3 ./shards --device=host --data=gnu --out=$name.other \
    --validation=20% --resume="$(newest shards.first)"

# Predictions and the commands for data.
for name in folder shards; do
    data=ustar
    [ $name = folder ] && data=images/test
    expect 0 ./$name --device=host --predict $data \
        --weights="$(newest folder.run)" -o $name.npy
done
expect_equal shards.npy folder.npy
expect 0 "$SINTER" data stats folder.net
cp out wanted
expect 0 "$SINTER" data stats shards.net
expect_equal out wanted
expect_says '    cat 7'
expect 0 "$SINTER" data bench shards.net
expect_says 'with images read from their files'

# A byte of an image is not that of a header.
printf 'GIF89a' | dd of=ustar/in-test-000000.tar bs=1 seek=1536 conv=notrunc \
    2>dd.log || fail "dd"
expect 3 "$SINTER" data verify shards.net
expect_says 'in-test-000000.tar:ant/0.png'
expect_says 'test: 9 samples, of which 1 cannot be read'
expect 3 ./shards --device=host --quiet --out=bad
expect_says 'or skip such files with --bad-samples'
expect 0 ./shards --device=host --quiet --out=skipped --bad-samples=skip:1
expect_says 'skipped and replaced by ustar/in-test-000000.tar:ant/1.jpg'
exit 0
