/* parser.c - tokens with one of lookahead, errors and nodes: what every rule is made of. */
#include "promql/parse/parser.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/pure/macros.h"

void pq_parser_init(struct pq_parser *p, struct qf_arena *arena, struct qf_str text,
                    const struct pq_parse_options *options, pq_lex_values_fn *values)
{
    size_t length_max;

    *p = (struct pq_parser){ .arena = arena, .context = { "", "" } };
    if (options)
        p->options = *options;
    if (!p->options.depth_max)
        p->options.depth_max = PQ_DEPTH_MAX;
    length_max = p->options.length_max ? p->options.length_max : PQ_LENGTH_MAX;
    if (text.len > length_max || text.len > UINT32_MAX) {
        p->failed = true;
        (void)qf_err_set(&p->error, QF_ELIMIT, "query of %zu bytes is longer than the limit of %zu",
                         text.len, length_max);
        return;
    }
    text = qf_arena_str(arena, text);
    if (!text.data)
        pq_parser_out_of_memory(p);
    pq_lex_init(&p->lex, text, values);
}

qf_rc pq_parser_finish(const struct pq_parser *p, struct qf_err *err)
{
    if (p->failed) {
        if (err)
            *err = p->error;
        return p->error.rc;
    }
    if (!p->check)
        return QF_OK;
    (void)qf_err_set(err, QF_EPARSE, "%s", p->check->msg);
    if (err) {
        err->pos_start = p->check->node ? p->check->node->pos.start : p->check->pos.start;
        err->pos_end = p->check->node ? p->check->node->pos.end : p->check->pos.end;
    }
    return QF_EPARSE;
}

enum pq_token_type pq_parser_peek(struct pq_parser *p)
{
    if (p->failed)
        return PQ_T_ERROR;
    if (!p->have_token) {
        do
            p->token = pq_lex_next(&p->lex);
        while (p->token.type == PQ_T_COMMENT);
        p->have_token = true;
        if (p->token.type == PQ_T_ERROR)
            pq_parser_fail(p, p->token.pos, "%s", p->lex.error);
    }
    return p->token.type;
}

struct pq_token pq_parser_next(struct pq_parser *p)
{
    (void)pq_parser_peek(p);
    p->have_token = p->failed; /* an error stays the next token */
    p->last = p->token.pos;
    return p->token;
}

bool pq_parser_accept(struct pq_parser *p, enum pq_token_type type)
{
    if (pq_parser_peek(p) != type)
        return false;
    (void)pq_parser_next(p);
    return true;
}

bool pq_parser_expect(struct pq_parser *p, enum pq_token_type type)
{
    if (pq_parser_accept(p, type))
        return true;
    pq_parser_unexpected(p);
    return false;
}

struct qf_str pq_parser_text(const struct pq_parser *p, struct pq_pos pos)
{
    return qf_str_sub(p->lex.text, pos.start, pos.end);
}

bool pq_parser_call_follows(struct pq_parser *p)
{
    size_t i;

    if (pq_parser_peek(p) == PQ_T_ERROR)
        return false;
    for (i = p->token.pos.end; i < p->lex.text.len && pq_is_space(p->lex.text.data[i]); i++)
        ;
    return i < p->lex.text.len && p->lex.text.data[i] == '(';
}

struct pq_context pq_parser_context(struct pq_parser *p, const char *context, const char *expected)
{
    struct pq_context old = p->context;

    p->context = (struct pq_context){ context, expected };
    return old;
}

void pq_parser_unexpected(struct pq_parser *p)
{
    struct qf_strbuf what = QF_STRBUF_INIT;

    if (pq_parser_peek(p) == PQ_T_ERROR)
        return;
    pq_token_describe(&what, p->lex.text, p->token);
    pq_parser_fail(p, p->token.pos, "unexpected %s%s%s%s%s", qf_strbuf_cstr(&what),
                   p->context.context[0] ? " in " : "", p->context.context,
                   p->context.expected[0] ? ", expected " : "", p->context.expected);
    qf_strbuf_done(&what);
}

void pq_parser_fail(struct pq_parser *p, struct pq_pos pos, const char *fmt, ...)
{
    va_list args;

    if (p->failed)
        return;
    p->failed = true;
    p->error.rc = QF_EPARSE;
    p->error.pos_start = pos.start;
    p->error.pos_end = pos.end;
    va_start(args, fmt);
    (void)vsnprintf(p->error.msg, sizeof(p->error.msg), fmt, args);
    va_end(args);
}

void pq_parser_out_of_memory(struct pq_parser *p)
{
    if (p->failed)
        return;
    p->failed = true;
    (void)qf_err_set(&p->error, QF_ELIMIT, "query needs more memory to parse than its limit");
}

bool pq_parser_enter(struct pq_parser *p)
{
    if (p->failed)
        return false;
    if (p->depth == p->options.depth_max) {
        (void)pq_parser_peek(p);
        pq_parser_fail(p, p->token.pos, "query is nested deeper than %zu levels",
                       p->options.depth_max);
        p->error.rc = QF_ELIMIT;
        return false;
    }
    p->depth++;
    return true;
}

void pq_parser_check(struct pq_parser *p, const struct pq_expr *node, struct pq_pos pos,
                     const char *fmt, ...)
{
    struct pq_check *check;
    char msg[QF_ERR_MSG_SIZE];
    va_list args;

    if (p->check || p->failed)
        return;
    va_start(args, fmt);
    (void)vsnprintf(msg, sizeof(msg), fmt, args);
    va_end(args);
    check = QF_ARENA_NEW(p->arena, struct pq_check);
    if (check) {
        *check = (struct pq_check){ node, pos, qf_arena_cstr(p->arena, qf_str_from(msg)) };
        p->check = check;
    }
    if (!check || !check->msg)
        pq_parser_out_of_memory(p);
}

struct pq_expr *pq_parser_node(struct pq_parser *p, enum pq_expr_kind kind, struct pq_pos pos)
{
    struct pq_expr *node = p->failed ? NULL : QF_ARENA_NEW(p->arena, struct pq_expr);

    if (!node) {
        pq_parser_out_of_memory(p);
        return NULL;
    }
    node->kind = kind;
    node->pos = pos;
    node->height = 1;
    return node;
}

void *pq_parser_push(struct pq_parser *p, void **items, size_t *count, size_t size)
{
    /* Capacities are powers of two, so that the count alone tells when the array is full. */
    if (*count == 0 || (*count >= 4 && (*count & (*count - 1)) == 0)) {
        size_t capacity = *count ? *count * 2 : 4;
        void *grown = qf_arena_grow(p->arena, *items, *count, capacity, size);

        if (!grown) {
            pq_parser_out_of_memory(p);
            return NULL;
        }
        *items = grown;
    }
    return (char *)*items + size * (*count)++;
}
