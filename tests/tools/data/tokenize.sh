#!/bin/sh
# sinter data tokenize gives the tokens of Hugging Face's tokenizers package, on
# a corpus of 1 MB in several scripts, and refuses what it cannot do.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

python=$SINTER_PYTHON
beside=$SINTER_SOURCE/tests/tools/data/beside_tokenizers.py
"$python" -c 'import tokenizers' 2>/dev/null || exit 77

# Texts of this project, and one of many scripts, blanks and broken-off words.
cat "$SINTER_SOURCE"/docs/*.md "$SINTER_SOURCE"/frontend/*/*.c \
    "$SINTER_SOURCE"/tests/*/*.c | head -c 1000000 >corpus
cat >scripts <<'END'
Zażółć gęślą jaźń. Ελληνικά, русский, 中文字符, 日本語のテキスト, 한국어.
It's we'll I'D 12345 67.89   three   blanks	tabs
e = mc²; ½ + ¼; naïve café — “quotes” … 🙂👩‍👩‍👧 عربى हिन्दी
    model <|endoftext|> model

 trailing blanks   
END
printf 'no newline at the end ' >>scripts
"$python" "$beside" make corpus scripts || fail "tokenizers are made"
for name in gpt2 special split characters; do
    expect 0 "$SINTER" data tokenize corpus scripts --tokenizer=$name.json \
        -o $name.tokens --validation=25%
    "$python" "$beside" same $name $name.tokens corpus scripts ||
        fail "$name differs"
    cmp $name.json $name.tokens/tokenizer.json || fail "$name is not kept"
done

# Characters: the tokenizers package reads the file.
expect 0 "$SINTER" data tokenize scripts --tokenizer=characters -o letters
cp letters/tokenizer.json letters.json
"$python" "$beside" same letters letters scripts ||
    fail "characters differ"
expect 0 "$SINTER" data tokenize scripts -o bytes --validation=0%
cmp scripts bytes/train.bin || fail "bytes are not the text"

# A data set is not overwritten, nor by half.
sha256sum bytes/* letters/* >sums
for folder in bytes letters; do
    expect 2 "$SINTER" data tokenize corpus -o $folder
    expect_says "$folder/train.bin exists; name a new folder with -o"
done
sha256sum --quiet -c sums || fail "a data set was overwritten"

# refused STATUS TEXT WORD...: the command ends with the status, and says TEXT.
refused() {
    status=$1 text=$2
    shift 2
    expect "$status" "$SINTER" data "$@"
    expect_says "$text"
}
printf 'broken \377' >broken
echo '{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}' >ascii.json
sed 's/"BPE"/"WordPiece"/' ascii.json >word.json
sed 's/{"model"/{"normalizer": {"type": "NFC"}, "model"/' ascii.json >nfc.json
head -c 5000 gpt2.json >short.json
refused 3 'the text is not UTF-8' tokenize broken --tokenizer=gpt2.json -o x
refused 3 'broken is not UTF-8' tokenize broken --tokenizer=characters -o x
refused 3 "has no token for 'Z'" tokenize scripts --tokenizer=ascii.json -o x
refused 3 'model WordPiece is not supported' \
    tokenize scripts --tokenizer=word.json -o x
sed 's/"BPE"/"BPE", "fuse_unk": true/' ascii.json >fused.json
refused 3 'model with fuse_unk is not supported' \
    tokenize scripts --tokenizer=fused.json -o x
refused 3 'normalizer NFC is not supported' \
    tokenize scripts --tokenizer=nfc.json -o x
refused 3 '^sinter: short.json: it is not a tokenizer.json' \
    tokenize scripts --tokenizer=short.json -o x
refused 2 'needs texts, and a folder' tokenize scripts
refused 2 'data tokenize takes no --data' tokenize scripts --data=x -o x
refused 2 'needs a share' tokenize scripts --validation=7 -o x
refused 2 "data has no 'words'; it has stats" words scripts
