"""Files for tables.sh: library makes libduckdb.so of DuckDB's Python package,
data writes the same samples as arrays, Parquet and CSV files, pictures the same
images as files beside a table and in Parquet files, and defects writes a folder
for each defect."""
import os
import struct
import subprocess
import sys
import zlib

import duckdb
import numpy as np

COLUMNS = ["a", "b", "c", "whole", "flag"]


def library():
    """The package's module has DuckDB's C interface.  A library beside it has
    the names of Python that the module needs, which C calls never use."""
    import _duckdb
    module = os.path.realpath(_duckdb.__file__)
    names = subprocess.run(["nm", "-D", "--undefined-only", module],
                           check=True, capture_output=True, text=True).stdout
    with open("python.s", "w") as f:
        print(".data", file=f)
        for name in (line.split()[1] for line in names.splitlines()):
            if name.lstrip("_").startswith("Py"):
                print(f".globl {name}\n.balign 16\n{name}: .zero 64", file=f)
        print('.section .note.GNU-stack,"",@progbits', file=f)
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-o",
                    "libduckdb.so", "python.s", "-Wl,--no-as-needed", module,
                    f"-Wl,-rpath,{os.path.dirname(module)}"], check=True)


def copy(sql, path):
    duckdb.sql(f"COPY ({sql}) TO '{path}'")


def samples(part, count):
    random = np.random.default_rng(len(part))
    x = random.normal(size=(count, len(COLUMNS)))
    x[:, 3] = random.integers(-3, 4, count)
    x[:, 4] = random.integers(0, 2, count)
    return x, np.add(x[:, 0] * x[:, 1] > 0, x[:, 3] > 1, dtype=np.int64)


def write(part, count):
    x, y = samples(part, count)
    column = {name: x[:, i] for i, name in enumerate(COLUMNS)}
    duckdb.register("numbers", {**column, "y": y, "row": np.arange(count)})
    inputs = "a, b, c, whole::SMALLINT AS whole, flag::BOOLEAN AS flag"
    name = "['bat', 'cat', 'rat'][y + 1] AS kind"
    order = "FROM numbers ORDER BY row"
    np.save(f"arrays/{part}_x.npy", x)
    np.save(f"arrays/{part}_y.npy", y)
    np.save(f"targets/{part}_x.npy", x)
    np.save(f"targets/{part}_y.npy", x[:, :2] * 2)
    half = count // 2
    for i in range(2):
        copy(f"SELECT a, y, b, c, whole, flag::BOOLEAN AS flag {order} LIMIT "
             f"{half} OFFSET {i * half}", f"parquet/{part}-{i}.parquet")
    copy(f"SELECT {name}, flag, whole, a, b, c {order}",
         f"named/{part}.parquet")
    copy(f"SELECT {inputs}, {name} {order}", f"csv/{part}.csv")
    copy(f"SELECT a * 2 AS u, {inputs}, b * 2 AS v {order}",
         f"prices/{part}.parquet")


def data():
    for folder in ("arrays", "targets", "parquet", "named", "csv", "prices",
                   "wide"):
        os.makedirs(folder)
    write("train", 400)
    write("test", 100)
    # DuckDB's pattern of the first path is the second one.
    for folder, files in (("it's [a] * of year=2020", "named/{}.parquet"),
                          ("it's a table of year=2020", "parquet/{}-0.parquet")):
        os.makedirs(folder)
        for part in "train", "test":
            os.link(files.format(part), f"{folder}/{part}.parquet")
    copy("SELECT * FROM 'csv/train.csv'", "one.parquet")
    wide = ", ".join(f"{i} AS column{i}" for i in range(100))
    for part, count in ("train", 100000), ("test", 10):
        copy(f"SELECT {wide}, 0 AS y FROM range({count})",
             f"wide/{part}.parquet")


def defect(name, text, test=None):
    """A training set of a SELECT list over ten rows i, or of CSV text."""
    os.makedirs(name)
    for part, content in ("train", text), ("test", test or text):
        if "\n" in content:
            with open(f"{name}/{part}.csv", "w") as f:
                f.write(content)
        else:
            copy(f"SELECT {content} FROM range(10) r(i)",
                 f"{name}/{part}.parquet")


def damage(name, change):
    defect(name, "i a, i b, i % 3 kind")
    with open(f"{name}/train.parquet", "rb+") as f:
        content = f.read()
        f.seek(0)
        f.truncate()
        f.write(change(content))


def defects():
    defect("gap", "CASE WHEN i <> 4 THEN i END a, i b, i % 3 kind")
    defect("csv_gap", "a,b,kind\n1,2,0\n1,,1\n")
    defect("nan", "i a, if(i = 9, 'nan'::DOUBLE, i) b, 0 kind")
    defect("large", "1e300 a, i b, 0 kind")
    defect("text", "i a, 'v' || i b, i % 3 kind")
    defect("late_text", "a,b,kind\n" + "1,2,0\n" * 30000 + "1,NA,0\n")
    defect("digits", "i a, i::VARCHAR b, 0 kind")
    defect("date", "i a, DATE '2020-01-01' b, 0 kind")
    defect("nested", "i a, {'x': i} b, 0 kind")
    defect("list", "i a, [i] b, 0 kind")
    defect("high", "i a, i b, i kind")
    defect("below", "i a, i b, -1 kind")
    defect("fraction", "i a, i b, 0.5 kind")
    defect("no_label", "i a, i b, CASE WHEN i < 3 THEN 1 END kind")
    defect("no_name", "i a, i b, CASE WHEN i < 3 THEN 'x' END kind")
    defect("names", "i a, i b, 'k' || i kind")
    defect("lines", "i a, i b, 'k' || chr(10) kind")
    defect("other_class", "i a, i b, 'x' kind", "i a, i b, 'y' kind")
    defect("other_columns", "i a, i b, 0 kind", "i a, i c, 0 kind")
    defect("three", "i a, i b, i c, 0 kind")
    defect("empty", "i a, i b, 0 kind", "i a, i b, 0 kind")
    copy("SELECT i a, i b, 0 kind FROM range(0) r(i)", "empty/train.parquet")
    defect("ragged", "a,b,kind\n1,2,0\n1,2,3,0\n")
    defect("latin", "a,b,kind\n1,2,x\n")
    with open("latin/train.csv", "wb") as f:
        f.write(b"a,b,kind\n1,2,caf\xe9\n")
    defect("escape", "a,\x1b[31mb,kind\n1,\x1b[31mx,0\n")
    defect("both", "i a, i b, 0 kind")
    copy("SELECT i a, i b, 0 kind FROM range(9) r(i)", "both/train.csv")
    damage("short", lambda b: b[:len(b) // 2])
    damage("tail", lambda b: b[len(b) // 2:])
    damage("magic", lambda b: b"PAR2" + b[4:-4] + b"PAR2")
    # Accepted.
    defect("duplicate", "a,a,kind\n1,2,0\n3,4,1\n")
    defect("types", "i::HUGEINT * 10000000000000000000000 a, "
           "(i / 3)::DECIMAL(9, 3) b, i::UBIGINT % 3 kind")


def png(pixels):
    """An image of [H, W, 3] bytes as a file."""
    def chunk(kind, body):
        sum = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + sum
    h, w, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def rows_write(path, rows, image="{'bytes': image, 'path': ''}",
               rest="label, 'x' AS note, true AS flag"):
    duckdb.sql("CREATE OR REPLACE TABLE rows(i INT, image BLOB, label INT)")
    for i, row in enumerate(rows):
        duckdb.execute("INSERT INTO rows VALUES (?, ?, ?)", [i, *row])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    copy(f"SELECT {rest}, {image} AS image FROM rows ORDER BY i", path)


def pictures():
    random = np.random.default_rng(1)
    os.makedirs("pictures")
    for part, count in ("train", 60), ("test", 20):
        rows = [(png(random.integers(0, 255, (8, 8, 3), "u1")),
                 int(random.integers(0, 3))) for _ in range(count)]
        with open(f"pictures/{part}.csv", "w") as table:
            print("image,label,flag", file=table)
            for i, (image, label) in enumerate(rows):
                with open(f"pictures/{part}{i}.png", "wb") as file:
                    file.write(image)
                print(f"{part}{i}.png,{label},1", file=table)
        rows_write(f"structs/data/{part}-0.parquet", rows[:15])
        rows_write(f"structs/data/{part}-1.parquet", rows[15:])
        rows_write(f"blobs/{part}/all.parquet", rows, "image")
        for name, change in (
                ("no_image", {"image": "i"}), ("no_label", {"rest": "i"}),
                ("null", {"image": "CASE WHEN i <> 3 THEN image END"}),
                ("gap", {"rest": "CASE WHEN i <> 3 THEN label END label"}),
                ("high", {"rest": "label + 1 AS label"}),
                ("broken", {"image": "'x'::BLOB"})):
            rows_write(f"bad_{name}/{part}.parquet", rows, **change)


if __name__ == "__main__":
    {"library": library, "data": data, "pictures": pictures,
     "defects": defects}[sys.argv[1]]()
