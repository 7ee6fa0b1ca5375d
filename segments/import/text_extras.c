/* text_extras.c - what text says besides samples: HELP, TYPE and UNIT of metrics, exemplars. */
#include "base/pure/utf8.h"
#include "segments/import/text_int.h"

/* --- metadata --- */

/* A metric's name, perhaps in quotes: where it ends. 0 if it does not. */
static size_t name_length(struct qf_str rest)
{
    size_t i = 1;

    if (!rest.len || rest.data[0] != '"') {
        for (i = 0; i < rest.len && !text_blank(rest.data[i]);)
            i++;
        return i;
    }
    while (i < rest.len && rest.data[i] != '"')
        i += rest.data[i] == '\\' ? 2 : 1;
    return i < rest.len ? i + 1 : 0;
}

const char *text_metadata_parse(struct qf_str keyword, struct qf_str rest,
                                struct text_metadata *ret_metadata)
{
    struct text_metadata metadata = { .says = qf_str_is(keyword, "HELP")   ? TEXT_SAYS_HELP
                                              : qf_str_is(keyword, "TYPE") ? TEXT_SAYS_TYPE
                                              : qf_str_is(keyword, "UNIT") ? TEXT_SAYS_UNIT
                                                                           : TEXT_SAYS_NOTHING };
    size_t len = name_length(rest);

    *ret_metadata = metadata;
    if (metadata.says == TEXT_SAYS_NOTHING)
        return NULL;
    metadata.name = qf_str_sub(rest, 0, len);
    if (!len || (rest.data[0] != '"' && !qf_metric_name_plain(metadata.name)))
        return "HELP, TYPE and UNIT are about a metric, whose name is malformed or missing";
    metadata.text = text_skip(qf_str_sub(rest, len, rest.len));
    if (metadata.says == TEXT_SAYS_TYPE &&
        !qf_metric_type_parse(qf_str_trim(metadata.text), &metadata.type))
        return "no metric has such a type";
    if (!qf_utf8_valid(metadata.text))
        return "HELP and UNIT must be UTF-8";
    *ret_metadata = metadata;
    return NULL;
}

/* \\ and \n, and \" as OpenMetrics has it; a backslash before anything else stays. */
static bool unescape(struct qf_arena *arena, struct qf_str text, struct qf_str *ret_text)
{
    char *out = qf_arena_alloc(arena, text.len + 1);
    size_t len = 0;

    for (size_t i = 0; out && i < text.len; i++) {
        char next = i + 1 < text.len && text.data[i] == '\\' ? text.data[i + 1] : 0;

        if (next != 'n' && next != '\\' && next != '"') {
            out[len++] = text.data[i];
            continue;
        }
        out[len++] = next == 'n' ? '\n' : next;
        i++;
    }
    *ret_text = (struct qf_str){ out, len };
    return out != NULL;
}

const char *text_metadata(const struct text_metadata *metadata, struct qf_arena *arena,
                          struct qf_str *ret_name, struct qf_str *ret_text)
{
    struct qf_str name = metadata->name;

    if (name.data[0] == '"' && (!text_quoted(arena, false, &name, ret_name) || !ret_name->len))
        return "a quoted name is malformed";
    if (metadata->name.data[0] != '"')
        *ret_name = qf_arena_str(arena, name);
    if (!unescape(arena,
                  metadata->says == TEXT_SAYS_HELP ? metadata->text : qf_str_trim(metadata->text),
                  ret_text) ||
        !ret_name->data)
        return "more text than memory allows";
    return NULL;
}

/* --- exemplars --- */

/* OpenMetrics knows no comments behind a sample; in other text "# {" begins an exemplar. */
const char *text_exemplar_find(const struct text_state *state, struct qf_str rest,
                               struct text_sample *sample)
{
    struct qf_str text = rest.len ? text_skip(qf_str_sub(rest, 1, rest.len)) : rest;

    if (text.len && text.data[0] == '{')
        sample->exemplar = text;
    else if (rest.len && state->format == SG_IMPORT_OPENMETRICS)
        return "what follows a sample is no exemplar";
    return NULL;
}

static size_t runes(struct qf_str text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return count;
}

static bool too_long(struct qf_labels labels)
{
    size_t total = 0;

    for (size_t i = 0; i < labels.count; i++)
        total += runes(labels.items[i].name) + runes(labels.items[i].value);
    return total > TEXT_EXEMPLAR_RUNES_MAX;
}

const char *text_exemplar(struct text_state *state, const struct text_sample *sample,
                          struct qf_arena *arena, struct text_exemplar *ret_exemplar)
{
    struct text_exemplar exemplar = { .ts = sample->ts };
    struct qf_str rest = sample->exemplar, word;
    const char *what =
        text_label_set(arena, state->format == SG_IMPORT_TSDB_DUMP, &rest, &exemplar.labels);

    if (what)
        return what;
    if (too_long(exemplar.labels))
        return "an exemplar's labels are too long";
    word = text_word(&rest);
    what = text_value(word, &exemplar.value);
    if (what)
        return "the value of an exemplar is not a number";
    word = text_word(&rest);
    if (word.len)
        what = text_timestamp(state, sample->series, word, &exemplar.ts);
    if (!what && rest.len)
        what = "something follows an exemplar";
    *ret_exemplar = exemplar;
    return what;
}
