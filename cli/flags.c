/* flags.c - command-line flags. */
#include "cli/flags.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/number.h"
#include "base/pure/slice.h"
#include "cli/nearest.h"

static void env_name(const char *flag, char *out, size_t size)
{
    size_t len = (size_t)snprintf(out, size, "PROMFABRIC_%s", flag);

    for (size_t i = 0; i < len && i < size; i++)
        out[i] = out[i] == '-' ? '_' : (char)toupper((unsigned char)out[i]);
}

static void print_help(const struct cli_spec *spec)
{
    printf("usage: %s\n\n%s\n\nflags (each also reads PROMFABRIC_<FLAG> from the environment):\n",
           spec->usage, spec->summary);
    for (size_t i = 0; i < spec->flag_count; i++) {
        const struct cli_flag *flag = &spec->flags[i];
        char left[80];

        (void)snprintf(left, sizeof(left), "--%s%s%s", flag->name, flag->argument ? " " : "",
                       flag->argument ? flag->argument : "");
        printf("  %-30s %s", left, flag->help);
        if (flag->standard)
            printf(" (default %s)", flag->standard);
        printf("\n");
    }
    printf("  %-30s %s\n", "--help", "print this");
}

static void list_add(struct cli_list *list, const char *item)
{
    list->items = qf_xrealloc(list->items, (list->count + 1) * sizeof(*list->items));
    list->items[list->count++] = item;
}

/* False if @text is not a value of the flag's kind. */
static bool set_value(const struct cli_flag *flag, const char *text)
{
    struct qf_str s = qf_str_from(text);

    switch (flag->kind) {
    case CLI_FLAG_BOOL:
        if (!qf_str_is(s, "true") && !qf_str_is(s, "false") && !qf_str_is(s, "1") &&
            !qf_str_is(s, "0"))
            return false;
        *(bool *)flag->value = s.data[0] == 't' || s.data[0] == '1';
        return true;
    case CLI_FLAG_STR:
        *(const char **)flag->value = text;
        return true;
    case CLI_FLAG_U64:
        return qf_parse_u64(s, flag->value);
    case CLI_FLAG_DOUBLE:
        return qf_parse_double(s, flag->value);
    case CLI_FLAG_DURATION:
        return qf_duration_parse(s, flag->value) == QF_DURATION_OK;
    case CLI_FLAG_BYTES:
        return qf_parse_bytes(s, flag->value);
    case CLI_FLAG_LIST:
        list_add(flag->value, text);
        return true;
    }
    return false;
}

static const char *expectation(enum cli_flag_kind kind)
{
    switch (kind) {
    case CLI_FLAG_BOOL:
        return "true or false";
    case CLI_FLAG_U64:
        return "a whole number";
    case CLI_FLAG_DOUBLE:
        return "a number";
    case CLI_FLAG_DURATION:
        return "a duration such as 30s or 1h30m";
    case CLI_FLAG_BYTES:
        return "a size such as 4096, 64MiB or 2GiB";
    case CLI_FLAG_STR:
    case CLI_FLAG_LIST:
        break;
    }
    return "a value";
}

/* A list in the environment or a default is separated by commas; the pieces live until exit. */
static void set_list(const struct cli_flag *flag, const char *text)
{
    static char *pieces[64]; /* keeps them reachable */
    static size_t piece_count;
    char *copy, *item, *rest;

    if (piece_count == QF_COUNT_OF(pieces))
        return;
    copy = rest = pieces[piece_count++] = qf_xstrdup(text);
    while ((item = strsep(&rest, ",")) != NULL)
        if (*item)
            list_add(flag->value, item);
    (void)copy;
}

static bool set_defaults(const struct cli_spec *spec, const bool *given)
{
    for (size_t i = 0; i < spec->flag_count; i++) {
        const struct cli_flag *flag = &spec->flags[i];
        char name[80];
        const char *text;

        if (given[i])
            continue;
        env_name(flag->name, name, sizeof(name));
        text = getenv(name);
        if (!text)
            text = flag->standard;
        if (!text)
            continue;
        if (flag->kind == CLI_FLAG_LIST) {
            set_list(flag, text);
        } else if (!set_value(flag, text)) {
            fprintf(stderr, "error: %s=%s: expected %s\n", name, text, expectation(flag->kind));
            return false;
        }
    }
    return true;
}

static const struct cli_flag *find(const struct cli_spec *spec, struct qf_str name)
{
    for (size_t i = 0; i < spec->flag_count; i++)
        if (qf_str_is(name, spec->flags[i].name))
            return &spec->flags[i];
    return NULL;
}

static const char *flag_name(const void *spec, size_t i)
{
    return ((const struct cli_spec *)spec)->flags[i].name;
}

/* Parse argv[*at], which starts with "--"; moves *at on if the value is the next argument. */
static bool parse_one(const struct cli_spec *spec, int argc, char **argv, int *at, bool *given)
{
    struct qf_str arg = qf_str_from(argv[*at] + 2);
    const char *equals = memchr(arg.data, '=', arg.len);
    struct qf_str name = equals ? qf_str_sub(arg, 0, (size_t)(equals - arg.data)) : arg;
    const struct cli_flag *flag = find(spec, name);
    const char *text = equals ? equals + 1 : NULL;

    if (!flag && !equals && qf_str_starts(name, QF_STR("no-"))) {
        flag = find(spec, qf_str_sub(name, 3, name.len));
        if (flag && flag->kind != CLI_FLAG_BOOL)
            flag = NULL;
        text = "false";
    }
    if (!flag) {
        const char *meant = cli_nearest(name, flag_name, spec, spec->flag_count);

        fprintf(stderr, "error: unknown flag %s; %s%s\n", argv[*at],
                meant ? "did you mean --" : "try --help", meant ? meant : "");
        return false;
    }
    if (!text && flag->kind == CLI_FLAG_BOOL)
        text = "true";
    if (!text && *at + 1 < argc)
        text = argv[++*at];
    if (!text) {
        fprintf(stderr, "error: --%s needs %s\n", flag->name, expectation(flag->kind));
        return false;
    }
    if (!set_value(flag, text)) {
        fprintf(stderr, "error: --%s %s: expected %s\n", flag->name, text, expectation(flag->kind));
        return false;
    }
    given[flag - spec->flags] = true;
    return true;
}

enum cli_parsed cli_flags_parse(const struct cli_spec *spec, int argc, char **argv,
                                int *ret_positional)
{
    bool *given = qf_xcalloc(spec->flag_count, sizeof(*given));
    enum cli_parsed parsed = CLI_PARSED_OK;
    int positional = 0;
    bool flags_ended = false;

    for (int i = 1; i < argc && parsed == CLI_PARSED_OK; i++) {
        if (flags_ended || strncmp(argv[i], "--", 2) != 0) {
            if (!flags_ended && strcmp(argv[i], "-h") == 0)
                parsed = CLI_PARSED_HELP;
            else
                argv[++positional] = argv[i];
        } else if (argv[i][2] == '\0') {
            flags_ended = true;
        } else if (strcmp(argv[i], "--help") == 0) {
            parsed = CLI_PARSED_HELP;
        } else if (!parse_one(spec, argc, argv, &i, given)) {
            parsed = CLI_PARSED_BAD;
        }
    }
    if (parsed == CLI_PARSED_HELP)
        print_help(spec);
    else if (parsed == CLI_PARSED_OK && !set_defaults(spec, given))
        parsed = CLI_PARSED_BAD;
    free(given);
    *ret_positional = positional;
    return parsed;
}

void cli_flags_done(const struct cli_spec *spec)
{
    for (size_t i = 0; i < spec->flag_count; i++) {
        struct cli_list *list = spec->flags[i].value;

        if (spec->flags[i].kind != CLI_FLAG_LIST)
            continue;
        free(list->items);
        *list = (struct cli_list){ 0 };
    }
}

static void put_value(const struct cli_flag *flag, struct qf_strbuf *text)
{
    char digits[QF_DOUBLE_TEXT_MAX];

    switch (flag->kind) {
    case CLI_FLAG_BOOL:
        qf_strbuf_puts(text, *(const bool *)flag->value ? "true" : "false");
        break;
    case CLI_FLAG_STR:
        qf_strbuf_puts(text,
                       *(const char *const *)flag->value ? *(const char *const *)flag->value : "");
        break;
    case CLI_FLAG_U64:
    case CLI_FLAG_BYTES:
        qf_strbuf_u64(text, *(const uint64_t *)flag->value);
        break;
    case CLI_FLAG_DOUBLE:
        qf_strbuf_add(text, digits, qf_double_g(*(const double *)flag->value, digits));
        break;
    case CLI_FLAG_DURATION:
        qf_duration_print(text, *(const int64_t *)flag->value);
        break;
    case CLI_FLAG_LIST: {
        const struct cli_list *list = flag->value;

        for (size_t i = 0; i < list->count; i++)
            qf_strbuf_printf(text, "%s%s", i ? "," : "", list->items[i]);
        break;
    }
    }
}

void cli_flags_json(const struct cli_spec *spec, struct qf_strbuf *buf)
{
    for (size_t i = 0; i < spec->flag_count; i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

        put_value(&spec->flags[i], &text);
        qf_strbuf_printf(buf, "%s\"%s\":", i ? "," : "{", spec->flags[i].name);
        qf_strbuf_json(buf, qf_strbuf_view(&text));
    }
    qf_strbuf_puts(buf, spec->flag_count ? "}" : "{}");
}
