/* test_value.c - values with a type, names of maps, definitions. */
#include <stdio.h>
#include <string.h>

#include "statemap/core/definition.h"
#include "tests/lib/test.h"

static const char *read_as(enum sm_type type, const char *text, bool json)
{
    static char out[128];
    struct qf_strbuf room = QF_STRBUF_INIT, printed = QF_STRBUF_INIT;
    struct sm_value value;
    struct qf_err err = { 0 };

    if (sm_value_parse(&room, type, qf_str_from(text), &value, &err) != QF_OK) {
        (void)snprintf(out, sizeof(out), "error: %s", err.msg);
    } else {
        CHECK(sm_value_valid(value.type, value.bytes));
        if (json)
            sm_value_json(&printed, value);
        else
            sm_value_print(&printed, value);
        (void)snprintf(out, sizeof(out), "%s", qf_strbuf_cstr(&printed));
    }
    qf_strbuf_done(&room);
    qf_strbuf_done(&printed);
    return out;
}

TEST(text_is_read_as_the_type_says)
{
    CHECK_STR(read_as(SM_ANY, "12", true), "\"12\"");
    CHECK_STR(read_as(SM_STRING, "a\"b", true), "\"a\\\"b\"");
    CHECK_STR(read_as(SM_INTEGER, "-9223372036854775808", false), "-9223372036854775808");
    CHECK_STR(read_as(SM_INTEGER, "9223372036854775807", true), "9223372036854775807");
    CHECK_STR(read_as(SM_DOUBLE, "1", true), "1.0");
    CHECK_STR(read_as(SM_DOUBLE, "0.1", false), "0.1");
    CHECK_STR(read_as(SM_DOUBLE, "nan", true), "\"NaN\"");
    CHECK_STR(read_as(SM_BOOLEAN, "true", true), "true");
    CHECK_STR(read_as(SM_BOOLEAN, "false", false), "false");
}

TEST(text_of_another_type_is_refused)
{
    CHECK_STR(read_as(SM_INTEGER, "9223372036854775808", false),
              "error: the value is no integer of 64 bits");
    CHECK_STR(read_as(SM_INTEGER, "1.5", false), "error: the value is no integer of 64 bits");
    CHECK_STR(read_as(SM_DOUBLE, "wide", false), "error: the value is no number");
    CHECK_STR(read_as(SM_BOOLEAN, "yes", false),
              "error: the value is no boolean: say true or false");
    CHECK_STR(read_as(SM_STRING, "\xff", false), "error: the value is not UTF-8");
}

static const char *folded(const char *name)
{
    static char out[SM_NAME_MAX + 1];

    return sm_name_fold(qf_str_from(name), out) ? out : "-";
}

TEST(names_are_matched_without_case)
{
    CHECK_STR(folded("MY_MAP_NAME"), "my_map_name");
    CHECK_STR(folded("cityToCountry"), "citytocountry");
    CHECK_STR(folded("_m2"), "_m2");
    CHECK_STR(folded("2m"), "-");
    CHECK_STR(folded("a-b"), "-");
    CHECK_STR(folded(""), "-");
    CHECK_STR(folded("../a"), "-");
}

static const char *refused(struct sm_definition definition)
{
    static struct qf_err err;

    err = (struct qf_err){ 0 };
    return sm_definition_check(&definition, &err) == QF_OK ? "" : err.msg;
}

TEST(a_definition_says_what_fits_its_kind)
{
    CHECK_STR(refused((struct sm_definition){
                  .layout = { SM_TEMPORAL, true }, .condense_ms = 1, .retention_ms = 2 }),
              "");
    CHECK_STR(refused((struct sm_definition){ .layout = { SM_SESSION, false }, .timeout_ms = 1 }),
              "");
    CHECK(strstr(refused((struct sm_definition){ .layout = { SM_RANGED, true } }), "no keys"));
    CHECK(strstr(
        refused((struct sm_definition){ .layout = { SM_SESSION, false }, .type = SM_STRING }),
        "no values"));
    CHECK(
        strstr(refused((struct sm_definition){ .layout = { SM_STATE, false }, .retention_ms = 1 }),
               "no times"));
    CHECK(strstr(refused((struct sm_definition){ .layout = { SM_STATE, false }, .timeout_ms = 1 }),
                 "no sessions"));
    CHECK(strstr(refused((struct sm_definition){ .map_bytes = 5 }), "1 MiB"));
}

TEST(cutoffs_are_off_unless_they_are_said)
{
    struct sm_definition definition = { .layout = { SM_TEMPORAL, false }, .retention_ms = 100 };
    struct sm_cutoffs cutoffs = sm_definition_cutoffs(&definition, 1000);

    CHECK_EQ(cutoffs.retain, 900);
    CHECK_EQ(cutoffs.condense, INT64_MIN);
}
