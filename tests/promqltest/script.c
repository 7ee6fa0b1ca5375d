/* script.c - a script as a list of commands. */
#include "tests/promqltest/script.h"

#include <ctype.h>

#include "base/pure/duration.h"
#include "tests/promqltest/script_int.h"

const struct pq_parse_options script_parse_options = {
    .experimental_functions = true,
    .extended_range_selectors = true,
    .fill_modifiers = true,
};

struct qf_str next_word(struct qf_str *rest)
{
    struct qf_str word;
    size_t len = 0;

    *rest = qf_str_trim(*rest);
    while (len < rest->len && rest->data[len] != ' ' && rest->data[len] != '\t')
        len++;
    word = qf_str_sub(*rest, 0, len);
    *rest = qf_str_trim(qf_str_sub(*rest, len, rest->len));
    return word;
}

qf_rc read_duration(struct qf_str word, int64_t *ret_ms, struct qf_err *err)
{
    if (qf_duration_parse(word, ret_ms) == QF_DURATION_OK)
        return QF_OK;
    return qf_err_set(err, QF_EINVAL, "bad duration \"%.*s\"", QF_STR_ARG(word));
}

static qf_rc split_lines(struct qf_arena *arena, struct qf_str text, struct lines *ret,
                         struct qf_err *err)
{
    size_t count = 1, at = 0;

    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] == '\n';
    ret->items = QF_ARENA_ARRAY(arena, struct qf_str, count);
    if (!ret->items)
        return qf_err_set(err, QF_ELIMIT, "the script is too long");
    ret->count = count;
    for (size_t n = 0; n < count; n++) {
        size_t end = at;

        while (end < text.len && text.data[end] != '\n')
            end++;
        ret->items[n] = qf_str_trim(qf_str_sub(text, at, end));
        if (ret->items[n].len && ret->items[n].data[0] == '#')
            ret->items[n].len = 0;
        at = end + 1;
    }
    return QF_OK;
}

/* The first word of the line, in lower case, begins with @prefix. */
static bool command_is(struct qf_str line, const char *prefix)
{
    for (size_t i = 0; prefix[i]; i++)
        if (i >= line.len || tolower((unsigned char)line.data[i]) != prefix[i])
            return false;
    return true;
}

/* The rest of a block that could not be read. */
static void skip_block(const struct lines *lines, size_t *at)
{
    while (*at < lines->count && lines->items[*at].len)
        (*at)++;
}

static qf_rc read_command(struct qf_arena *arena, const struct lines *lines, size_t *at,
                          struct script_command *ret, struct qf_err *err)
{
    struct qf_str line = lines->items[*at];
    struct qf_err problem = { 0 };

    ret->line = *at + 1;
    if (command_is(line, "clear")) {
        ret->kind = SCRIPT_CLEAR;
        (*at)++;
        return QF_OK;
    }
    if (command_is(line, "load")) {
        ret->kind = SCRIPT_LOAD;
        ret->rc = read_load(arena, lines, at, &ret->load, &problem);
    } else if (command_is(line, "eval")) {
        ret->kind = SCRIPT_EVAL;
        ret->rc = read_eval(arena, lines, at, &ret->eval, &problem);
    } else {
        return qf_err_set(err, QF_EINVAL, "line %zu: unknown command \"%.*s\"", ret->line,
                          QF_STR_ARG(line));
    }
    if (ret->rc != QF_OK) {
        ret->error = qf_arena_cstr(arena, qf_str_from(problem.msg));
        skip_block(lines, at);
    }
    return QF_OK;
}

qf_rc script_parse(struct qf_arena *arena, struct qf_str text, struct script *ret_script,
                   struct qf_err *err)
{
    struct lines lines;
    size_t at = 0, capacity;
    qf_rc rc = split_lines(arena, text, &lines, err);

    if (rc != QF_OK)
        return rc;
    capacity = lines.count;
    *ret_script =
        (struct script){ .commands = QF_ARENA_ARRAY(arena, struct script_command, capacity) };
    if (!ret_script->commands)
        return qf_err_set(err, QF_ELIMIT, "the script is too long");
    while (at < lines.count) {
        if (lines.items[at].len == 0) {
            at++;
            continue;
        }
        rc = read_command(arena, &lines, &at, &ret_script->commands[ret_script->count++], err);
        if (rc != QF_OK)
            return rc;
    }
    return QF_OK;
}
