#!/bin/sh
# Databases of LMDB have the images of an image folder: the same weights to the
# bit, from records of Caffe and from databases of each class, which Python's
# lmdb and protobuf write.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
. "$SINTER_SOURCE/tests/end_to_end/image_model.sh"

python=$SINTER_PYTHON
"$python" -c 'import lmdb, numpy, PIL, google.protobuf' 2>/dev/null || exit 77
"$python" - <<'PYTHON' || fail "data"
import os
import lmdb
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from PIL import Image

# message Datum of caffe.proto
file = descriptor_pb2.FileDescriptorProto(name="caffe.proto", package="caffe")
message = file.message_type.add(name="Datum")
kind = descriptor_pb2.FieldDescriptorProto
for number, (name, type) in enumerate([
        ("channels", kind.TYPE_INT32), ("height", kind.TYPE_INT32),
        ("width", kind.TYPE_INT32), ("data", kind.TYPE_BYTES),
        ("label", kind.TYPE_INT32), ("float_data", kind.TYPE_FLOAT),
        ("encoded", kind.TYPE_BOOL)], 1):
    many = kind.LABEL_REPEATED if name == "float_data" else kind.LABEL_OPTIONAL
    message.field.add(name=name, number=number, type=type, label=many)
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
Datum = message_factory.GetMessageClass(
    pool.FindMessageTypeByName("caffe.Datum"))

random = np.random.default_rng(0)
classes = ["ant", "cat", "dog"]
suffix = ["png", "jpg", "webp"]
images = {"train": [], "test": []}
for part, count in ("train", 7), ("test", 3):
    for label, name in enumerate(classes):
        for folder in f"images/{part}/{name}", f"pixels/{part}/{name}":
            os.makedirs(folder)
        for i in range(count):
            path = f"{part}/{name}/{i}.{suffix[i % 3]}"
            pixels = random.integers(0, 80, (20, 24 + i, 3)) + 80 * label
            Image.fromarray(pixels.astype(np.uint8)).save(f"images/{path}")
            image = Image.open(f"images/{path}")
            image.save(f"pixels/{part}/{name}/{i}.png")
            with open(f"images/{path}", "rb") as f:
                images[part].append((path, f.read(), np.array(image), label))

def write(folder, entries):
    os.makedirs(folder)
    with lmdb.open(folder, map_size=1 << 28) as base:
        with base.begin(write=True) as change:
            for key, value in entries:
                change.put(key.encode(), value)

def encoded(pixels, bytes, label):
    return Datum(channels=3, height=pixels.shape[0], width=pixels.shape[1],
                 data=bytes, label=label, encoded=True)

def raw(pixels, bytes, label, order=slice(None, None, -1)):
    planes = np.ascontiguousarray(pixels[:, :, order].transpose(2, 0, 1))
    return Datum(channels=3, height=pixels.shape[0], width=pixels.shape[1],
                 data=planes.tobytes(), label=label)

def rgb(pixels, bytes, label):
    return raw(pixels, bytes, label, slice(None))

# Names of folders as Caffe's examples, DIGITS and people have them.
for folder, record, names in (
        ("encoded", encoded, {"train": "train", "test": "val"}),
        ("raw", raw, {"train": "set_train_lmdb", "test": "set_test_lmdb"}),
        ("rgb", rgb, {"train": "train_db", "test": "val_db"})):
    for part, all in images.items():
        write(f"{folder}/{names[part]}",
              ((f"{k:08d}_{path}", record(pixels, bytes, label)
                .SerializeToString())
               for k, (path, bytes, pixels, label) in enumerate(all)))

# A database for each class, as LSUN's are; in folders, too.
for part, all in images.items():
    short = {"train": "train", "test": "val"}[part]
    for label, name in enumerate(classes):
        of_class = [(path, bytes) for path, bytes, _, l in all if l == label]
        write(f"lsun/{name}_{short}_lmdb", of_class)
        write(f"folders/{part}/{name}", of_class)

# A tree of some levels, from which every other entry was removed, and a compact
# copy of it.
write("deep/train", ())
with lmdb.open("deep/train", map_size=1 << 28) as base:
    value = Datum(channels=1, height=4, width=4, data=bytes(range(16)), label=1)
    keys = [b"%08d" % k for k in random.permutation(6000)]
    for k in range(3):
        with base.begin(write=True) as change:
            for key in keys[k::3]:
                change.put(key * 8, value.SerializeToString())
    with base.begin(write=True) as change:
        for key in keys[::2]:
            change.delete(key * 8)
    os.makedirs("compact/train")
    base.copy("compact/train", compact=True)
    if base.stat()["depth"] < 3:
        raise SystemExit("the tree is too flat")

# Bases that are refused.
os.makedirs("names/train")
with lmdb.open("names/train", max_dbs=2) as base:
    with base.begin(write=True, db=base.open_db(b"a")) as change:
        change.put(b"k", b"v")
write("empty/train", ())
write("text/train", [("k", b"some text")])
write("floats/train", [("k", Datum(channels=1, height=1, width=2,
                                   float_data=[1, 2]).SerializeToString())])
write("sizes/train", [("k", Datum(channels=3, height=2, width=2,
                                  data=b"123").SerializeToString())])
write("label/train", [("k", Datum(channels=1, height=1, width=1, data=b"1",
                                  label=3).SerializeToString())])
write("alone/train", [("k", images["train"][0][1])])
PYTHON

model 'image_folder("images", size=16)' >folder.net
model 'lmdb("encoded", size=16)' >base.net
model 'lmdb("rgb", size=16, rgb=true)' >order.net
for name in folder base order; do
    expect 0 "$SINTER" build $name.net -o $name
done

# weights RUN TO: the parameters of its newest checkpoint.
weights() {
    for name in linear_1.weight linear_1.bias; do
        tensor "$(newest "$1")" $name
    done >"$2"
    [ -s "$2" ] || fail "$1 has no weights"
}

# trains TRAINER DATA WANTED: has the weights in file WANTED, if there is one.
trains() {
    expect 0 ./"$1" --device=host --quiet --data="$2" --out="$2.run" \
        --threads=3
    weights "$2.run" found
    [ -s "$3" ] || cp found "$3"
    expect_equal found "$3"
}
trains folder images wanted
for data in encoded lsun folders; do
    trains base $data wanted
done
trains folder pixels wanted.pixels
trains base raw wanted.pixels
trains order rgb wanted.pixels

# Samples are held out, from a single database, too, and a run is resumed.
for name in folder base; do
    data=images
    [ $name = base ] && data=encoded
    expect 0 ./$name --device=host --quiet --validation=20% --steps=5 \
        --data=$data --out=$name.first
    expect 0 ./$name --device=host --quiet --validation=20% --data=$data \
        --out=$name.held --resume="$(newest $name.first)"
    weights $name.held $name.weights
done
expect_equal base.weights folder.weights
expect 0 ./base --device=host --quiet --validation=20% --data=encoded/train \
    --out=single
expect 3 ./base --device=host --data=lsun --out=other --validation=20% \
    --resume="$(newest base.first)"

# Predictions and the commands for data.
for name in folder base; do
    data=encoded
    [ $name = folder ] && data=images/test
    expect 0 ./$name --device=host --predict $data \
        --weights="$(newest images.run)" -o $name.npy
done
expect_equal base.npy folder.npy
expect 0 "$SINTER" data stats folder.net
cp out wanted
sed 's/encoded/lsun/' base.net >lsun.net
expect 0 "$SINTER" data stats lsun.net
expect_equal out wanted
expect_says '    cat 7'
expect 0 "$SINTER" data bench base.net
expect_says 'with images read from their files'
for data in deep compact; do
    expect 0 ./base --device=host --load-only --validation=10% --data=$data
    expect_says 'loaded 2700 samples'
done

# refused DATA TEXT: the file is refused.
refused() {
    expect 3 ./base --device=host --load-only --validation=10% --data="$1"
    expect_says "$2"
}
refused names 'names/train/data.mdb has databases with names'
refused empty 'empty/train/data.mdb has no entry'
refused text 'text/train/data.mdb:k: it is no message Datum of Caffe'
refused floats 'floats/train/data.mdb:k has its pixels in float_data'
refused sizes 'sizes/train/data.mdb:k: its 3 bytes are neither'
refused label 'label/train/data.mdb:k has label 3, but the model has 3 classes'
refused alone 'alone/train/data.mdb has images without a class'
expect 3 ./base --device=host --data=deep
expect_says 'deep has no folder with a data.mdb for the test'
refused images 'images has no folder with a data.mdb for training'

# A file may end anywhere.
bytes=$(wc -c <encoded/train/data.mdb)
mkdir -p cut/train
for part in 0 100 5000 9000 $((bytes / 2)) $((bytes - 1)); do
    head -c "$part" encoded/train/data.mdb >cut/train/data.mdb
    refused cut 'cut/train/data.mdb: page'
done

# An image is damaged.
at=$(grep -abo 'JFIF' encoded/train/data.mdb | head -n 1 | cut -d : -f 1)
printf 'GIF89a' | dd of=encoded/train/data.mdb bs=1 seek="$((at - 6))" \
    conv=notrunc 2>dd.log || fail "dd"
expect 3 "$SINTER" data verify base.net
expect_says 'encoded/train/data.mdb:00000001_train/ant/1.jpg'
expect_says 'train: 21 samples, of which 1 cannot be read'
expect 0 ./base --device=host --quiet --out=skipped --bad-samples=skip:1
expect_says 'skipped and replaced by encoded/train/data.mdb:'
exit 0
