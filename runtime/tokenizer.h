// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tokenizer: a text as numbers of tokens, and back.
//
// It reads the tokenizer.json of Hugging Face's tokenizers, of model BPE
// (Sennrich et al., "Neural Machine Translation of Rare Words with Subword
// Units", ACL 2016), over bytes or characters.  Without a file, tokens are
// bytes.  Other models, normalizers and pre-tokenizers are refused.  A text is
// encoded as by encode(text, add_special_tokens=False).
#ifndef RUNTIME_TOKENIZER_H
#define RUNTIME_TOKENIZER_H

#include "runtime/runtime.h"

typedef struct RtTokenizer RtTokenizer;

// Tokens of a text.
typedef struct {
    int32_t *token;
    size_t count, room;
} RtTokens;

// The tokenizer.json in a folder, or beside a file, which the caller frees;
// NULL: there is none.
char *rt_tokenizer_near(const char *path);

// Path NULL: bytes.  NULL, with *e filled, on an error; the caller frees it.
RtTokenizer *rt_tokenizer_open(const char *path, RtError *e);
void rt_tokenizer_free(RtTokenizer *t);

// One more than the largest number of a token.
int rt_tokenizer_size(const RtTokenizer *t);

// Appends the tokens of a text to `to`, whose memory the caller frees.  False
// with *e filled if the text is not UTF-8 or has a character without a token.
bool rt_tokenizer_encode(RtTokenizer *t, const char *text, size_t length,
                         RtTokens *to, RtError *e);

// Appends a token.
bool rt_tokens_add(RtTokens *to, int32_t token, RtError *e);

// The bytes of a token, which can be a part of a character; NULL if there is no
// such token.
const char *rt_tokenizer_bytes(const RtTokenizer *t, int32_t token,
                               size_t *length);

// The token that ends a text, as <|endoftext|>; -1: none.
int32_t rt_tokenizer_end(const RtTokenizer *t);

#endif
