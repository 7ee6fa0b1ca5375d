/* fuzz_lex.c - any bytes become tokens that lie one behind the other, then an end or an error. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "promql/parse/lex.h"
#include "promql/testing/series.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void lex(struct qf_str text, bool series)
{
    struct pq_lexer lexer;
    struct pq_token token;
    size_t end = 0, count = 0;

    pq_lex_init(&lexer, text, series ? pq_lex_series_value : NULL);
    do {
        token = pq_lex_next(&lexer);
        assert(token.pos.start >= end);
        assert(token.pos.end >= token.pos.start);
        assert(token.pos.end <= text.len);
        assert(++count <= text.len + 1);
        end = token.pos.end;
    } while (token.type != PQ_T_EOF && token.type != PQ_T_ERROR);
    assert((token.type == PQ_T_ERROR) == (lexer.error[0] != '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_str text = { (const char *)data, size };

    lex(text, false);
    lex(text, true);
    return 0;
}
