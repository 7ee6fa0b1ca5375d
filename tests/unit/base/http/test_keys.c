/* test_keys.c - the table of API keys. */
#include "base/http/keys.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "tests/lib/test.h"

/* What is said of a table that is not one. */
static const char *said_of(const char *text)
{
    static struct qf_err err;

    err = (struct qf_err){ 0 };
    CHECK(!qh_keys_parse(qf_str_from(text), "keys", &err));
    CHECK_EQ(err.rc, QF_EINVAL);
    return err.msg;
}

TEST(lines_that_are_none_are_named)
{
    CHECK_STR(said_of("a team-a\nb\n"), "keys:2: not \"KEY TENANT [NAME]\"");
    CHECK_STR(said_of("a ../etc"), "keys:1: not \"KEY TENANT [NAME]\"");
    CHECK_STR(said_of("a team-a name more"), "keys:1: not \"KEY TENANT [NAME]\"");
    CHECK_STR(said_of("sha256:12 team-a"), "keys:1: sha256: needs 64 digits from 0 to f behind it");
    CHECK_STR(said_of("a team-a\nb team-b\na team-b\n"), "keys: the same key twice");
    CHECK_STR(said_of("a t n123456789012345678901234567890123456789012345678901234567890123"),
              "keys:1: the name of a key has at most 63 printable characters");
}

/* A digest and its key are the same key, and the same key twice if both are there. */
TEST(digests_stand_for_their_keys)
{
    const char *digest = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct qf_err err = { 0 };
    struct qh_keys *keys;

    qf_strbuf_printf(&text, "%s team-a", digest);
    keys = qh_keys_parse(qf_strbuf_view(&text), "keys", &err);
    CHECK_MSG(keys, "%s", err.msg);
    CHECK(!qh_keys_have_secrets(keys));
    CHECK_STR(qh_keys_find(keys, QF_STR("abc"))->tenant, "team-a");
    CHECK(!qh_keys_find(keys, QF_STR("abd")));
    CHECK(!qh_keys_find(keys, qf_str_from(digest)));
    CHECK(!qh_keys_find(keys, QF_STR("")));
    keys = qh_keys_free(keys);
    qf_strbuf_puts(&text, "\nabc team-b\n");
    CHECK(!qh_keys_parse(qf_strbuf_view(&text), "keys", &err));
}

/* However long: a cut line would be two keys that nobody gave. */
TEST(lines_may_be_long)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct qf_err err = { 0 };
    struct qh_keys *keys;

    for (size_t i = 0; i < 5000; i++)
        qf_strbuf_putc(&text, 'k');
    qf_strbuf_puts(&text, " team-a\r\n");
    keys = qh_keys_parse(qf_strbuf_view(&text), "keys", &err);
    CHECK_MSG(keys, "%s", err.msg);
    CHECK_EQ(qh_keys_count(keys), 1);
    text.len = 5000;
    CHECK(qh_keys_find(keys, qf_strbuf_view(&text)));
    text.len = 1023;
    CHECK(!qh_keys_find(keys, qf_strbuf_view(&text)));
    keys = qh_keys_free(keys);
}
