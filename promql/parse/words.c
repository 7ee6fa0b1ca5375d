/* words.c - names of tokens, both ways. */
#include "promql/parse/words.h"

#include "base/pure/macros.h"
#include "base/pure/utf8.h"

enum class { PLAIN, OPERATOR, KEYWORD, AGGREGATOR, FIELD, HINT };

static const struct row {
    const char *name;
    const char *text;
    enum class class;
} rows[PQ_T__COUNT] = {
#define PQ_TOKEN(name, text) { #name, text, PLAIN },
#define PQ_SIGN(name, text) { #name, text, OPERATOR },
#define PQ_WORD(name, word, class) { #name, word, class },
#define PQ_FIELD(name, word) { #name, word, FIELD },
#define PQ_HINT(name, word) { #name, word, HINT },
#include "promql/parse/tokens.def"
#undef PQ_TOKEN
#undef PQ_SIGN
#undef PQ_WORD
#undef PQ_FIELD
#undef PQ_HINT
};

#define WORD_LEN_MAX 18 /* counter_reset_hint */

enum pq_token_type pq_word_among(struct qf_str word, enum pq_token_type first,
                                 enum pq_token_type last)
{
    char lower[WORD_LEN_MAX];

    if (word.len == 0 || word.len > sizeof(lower))
        return PQ_T_IDENTIFIER;
    for (size_t i = 0; i < word.len; i++)
        lower[i] =
            (char)(word.data[i] >= 'A' && word.data[i] <= 'Z' ? word.data[i] | 0x20 : word.data[i]);
    for (enum pq_token_type type = first; type <= last; type++)
        if (rows[type].text[0] == lower[0] &&
            qf_str_is((struct qf_str){ lower, word.len }, rows[type].text))
            return type;
    return PQ_T_IDENTIFIER;
}

enum pq_token_type pq_word_find(struct qf_str word)
{
    static const char *const numbers[] = { "inf", "nan" };

    if (word.len == 3)
        for (size_t i = 0; i < QF_COUNT_OF(numbers); i++)
            if ((word.data[0] | 0x20) == numbers[i][0] && (word.data[1] | 0x20) == numbers[i][1] &&
                (word.data[2] | 0x20) == numbers[i][2])
                return PQ_T_NUMBER;
    return pq_word_among(word, PQ_T_LAND, PQ_T_WITHOUT);
}

const char *pq_token_name(enum pq_token_type type)
{
    return rows[type].name;
}

bool pq_token_is_keyword(enum pq_token_type type)
{
    return rows[type].class == KEYWORD;
}

bool pq_token_is_aggregator(enum pq_token_type type)
{
    return rows[type].class == AGGREGATOR;
}

/* Quoted, and cut after ten characters where a long one would drown the message. */
static void quote_short(struct qf_strbuf *buf, struct qf_str text)
{
    size_t end = 0;

    for (int i = 0; i < 10 && end < text.len; i++) {
        uint32_t rune;
        size_t len = qf_utf8_decode(qf_str_sub(text, end, text.len), &rune);

        end += len ? len : 1;
    }
    qf_strbuf_quote(buf, qf_str_sub(text, 0, end));
    if (text.len > 10)
        qf_strbuf_puts(buf, "...");
}

void pq_token_describe(struct qf_strbuf *buf, struct qf_str text, struct pq_token token)
{
    struct qf_str value = qf_str_sub(text, token.pos.start, token.pos.end);
    const struct row *row = &rows[token.type];

    switch (row->class) {
    case OPERATOR:
        qf_strbuf_printf(buf, "<op:%.*s>", QF_STR_ARG(value));
        return;
    case KEYWORD:
        qf_strbuf_printf(buf, "<%.*s>", QF_STR_ARG(value));
        return;
    case AGGREGATOR:
        qf_strbuf_printf(buf, "<aggr:%.*s>", QF_STR_ARG(value));
        return;
    case FIELD:
        /* Prometheus has no word for these and prints the number of the token. */
        qf_strbuf_printf(buf, "\"<Item %d>\" ", 57370 + (int)token.type - PQ_T_SUM_DESC);
        quote_short(buf, value);
        return;
    case PLAIN:
    case HINT:
        break;
    }
    if (token.type == PQ_T_EOF) {
        qf_strbuf_puts(buf, "end of input");
        return;
    }
    if (token.type == PQ_T_IDENTIFIER || token.type == PQ_T_METRIC_IDENTIFIER) {
        qf_strbuf_puts(buf, token.type == PQ_T_IDENTIFIER ? "identifier " : "metric identifier ");
        qf_strbuf_quote(buf, value);
        return;
    }
    if (token.type == PQ_T_NUMBER)
        qf_strbuf_puts(buf, "number ");
    if (token.type == PQ_T_DURATION)
        qf_strbuf_puts(buf, "duration ");
    if (token.type == PQ_T_STRING)
        qf_strbuf_puts(buf, "string ");
    quote_short(buf, value);
}
