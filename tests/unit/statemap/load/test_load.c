/* test_load.c - rows out of XML, JSON lines and CSV: the specification's examples, and everything that is refused. */
#include "statemap/load/load.h"

#include "base/pure/duration.h"
#include "tests/unit/statemap/statemap_help.h"

struct bench {
    char *folder;
    struct sm_store *store;
    struct qf_err err;
    struct sm_loaded count;
    char skipped[300]; /* the last reason */
};

static void define(struct bench *b, const char *name, enum sm_kind kind, enum sm_type type)
{
    struct sm_definition definition = { .layout.kind = kind, .type = type };

    (void)snprintf(definition.name, sizeof(definition.name), "%s", name);
    if (kind == SM_SESSION)
        definition.timeout_ms = strcmp(name, "sessions") == 0 ? 600000 : 0;
    CHECK_OK(sm_store_define(b->store, &definition, &b->err), &b->err);
}

static struct bench bench_open(void)
{
    struct bench b = { .folder = help_folder() };
    struct sm_store_options options = { .root = b.folder, .write = true };

    CHECK_OK(sm_store_open(&options, &b.store, &b.err), &b.err);
    define(&b, "citytocountry", SM_TEMPORAL, SM_STRING);
    define(&b, "countrytocity", SM_STATE, SM_ANY);
    define(&b, "employeeidtocountry", SM_TEMPORAL_RANGED, SM_ANY);
    define(&b, "user_app_sessions", SM_SESSION, SM_ANY);
    define(&b, "sessions", SM_SESSION, SM_ANY);
    define(&b, "site", SM_RANGED, SM_ANY);
    define(&b, "integers", SM_STATE, SM_INTEGER);
    define(&b, "doubles", SM_STATE, SM_DOUBLE);
    define(&b, "objects", SM_STATE, SM_JSON);
    return b;
}

static void bench_done(struct bench *b)
{
    b->store = sm_store_close(b->store);
    help_folder_gone(&b->folder);
}

static void note(void *ctx, const char *why)
{
    struct bench *b = ctx;

    (void)snprintf(b->skipped, sizeof(b->skipped), "%s", why);
}

enum { NOW = 1700000000 };

/* @piece: how many bytes are fed at a time. */
static qf_rc load_pieces(struct bench *b, enum sm_format format, const char *text, size_t piece,
                         bool skip)
{
    struct sm_load_options options = {
        .store = b->store, .now_ms = NOW, .skip = skip, .skipped = note, .ctx = b
    };
    size_t len = strlen(text);
    struct sm_load *load;
    uint64_t position, left;
    qf_rc rc = QF_OK;

    b->err = (struct qf_err){ 0 };
    CHECK_OK(sm_writer_begin(b->store, &options.writer, &b->err), &b->err);
    load = sm_load_new(&options, format);
    for (size_t at = 0; at < len && rc == QF_OK; at += piece)
        rc = sm_load_feed(load, (struct qf_str){ text + at, QF_MIN(piece, len - at) }, &b->err);
    if (rc == QF_OK)
        rc = sm_load_end(load, &b->err);
    b->count = sm_load_count(load);
    (void)sm_load_free(load);
    if (rc != QF_OK) {
        (void)sm_writer_abort(options.writer);
        return rc;
    }
    CHECK_OK(sm_writer_finish(options.writer, &position, &b->err), &b->err);
    CHECK_OK(sm_store_merge(b->store, &left, &b->err), &b->err);
    return QF_OK;
}

static void load(struct bench *b, enum sm_format format, const char *text)
{
    CHECK_OK(load_pieces(b, format, text, 1 << 20, false), &b->err);
}

static const char *refused(struct bench *b, enum sm_format format, const char *text)
{
    return load_pieces(b, format, text, 7, false) == QF_OK ? "" : b->err.msg;
}

/* The answer as JSON, "-" for none; sessions as their ends. */
static const char *get(struct bench *b, const char *map, const char *key, const char *time)
{
    static char text[400];
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct sm_reading reading;
    struct sm_row row = { 0 };
    int64_t at = INT64_MAX - 1;
    bool found = false;

    CHECK(!time || qf_time_parse_rfc3339(qf_str_from(time), &at));
    CHECK_OK(sm_reading_begin(b->store, qf_str_from(map), &reading, &b->err), &b->err);
    if (sm_kind_ranged(sm_layout_of(reading.txn)->kind))
        CHECK_OK(sm_find_number(reading.txn, strtoll(key, NULL, 10), at, &found, &row, &b->err),
                 &b->err);
    else
        CHECK_OK(sm_find(reading.txn, qf_str_from(key), at, &found, &row, &b->err), &b->err);
    if (!found) {
        qf_strbuf_puts(&buf, "-");
    } else if (sm_layout_of(reading.txn)->kind == SM_SESSION) {
        qf_time_print_rfc3339(&buf, row.time);
        qf_strbuf_putc(&buf, ' ');
        qf_time_print_rfc3339(&buf, row.end);
    } else {
        sm_value_json(&buf, row.value);
    }
    sm_reading_end(b->store, &reading);
    (void)snprintf(text, sizeof(text), "%s", qf_strbuf_cstr(&buf));
    return text;
}

static const char example[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<referenceData xmlns=\"reference-data:2\" xmlns:evt=\"event-logging:3\">\n"
    "    <reference>\n"
    "        <map>cityToCountry</map>\n"
    "        <time>2024-01-01T08:10:22.023Z</time> <!-- optional defaults to effective time -->\n"
    "        <key>cardiff</key>\n"
    "        <value>Wales</value>\n"
    "    </reference>\n"
    "    <reference>\n"
    "        <map>countryToCity</map>\n"
    "        <key>wales</key>\n"
    "        <value>Car<!-- in two pieces -->diff</value>\n"
    "    </reference>\n"
    "    <!-- Ranged state using from/to numeric values -->\n"
    "    <reference>\n"
    "        <map>employeeIdToCountry</map>\n"
    "        <time>2024-01-01T08:10:22.023Z</time>\n"
    "        <from>1001</from>\n"
    "        <to>1700</to>\n"
    "        <value>UK</value>\n"
    "    </reference>\n"
    "    <reference>\n"
    "        <map>employeeIdToCountry</map>\n"
    "        <time>2024-01-01T08:10:22.023Z</time>\n"
    "        <key>203</key>\n"
    "        <value><![CDATA[U<K]]> &amp; &#x41;</value>\n"
    "    </reference>\n"
    "    <session>\n"
    "        <map>user_app_sessions</map>\n"
    "        <key>user1_app1</key>\n"
    "        <time>2024-01-01T08:10:22.023Z</time>\n"
    "        <timeout>15m</timeout>\n"
    "    </session>\n"
    "</referenceData>\n";

TEST(the_examples_of_the_specification_are_loaded_in_pieces_of_any_size)
{
    static const size_t pieces[] = { 1, 3, 64, 1 << 20 };

    for (size_t i = 0; i < QF_COUNT_OF(pieces); i++) {
        QF_CLEANUP(bench_done) struct bench b = bench_open();

        CHECK_OK(load_pieces(&b, SM_XML, example, pieces[i], false), &b.err);
        CHECK_EQ(b.count.rows, 5);
        CHECK_STR(get(&b, "cityToCountry", "cardiff", NULL), "\"Wales\"");
        CHECK_STR(get(&b, "cityToCountry", "cardiff", "2024-01-01T08:10:22.022Z"), "-");
        CHECK_STR(get(&b, "CITYTOCOUNTRY", "cardiff", "2024-01-01T08:10:22.023Z"), "\"Wales\"");
        CHECK_STR(get(&b, "countrytocity", "wales", NULL), "\"Cardiff\"");
        CHECK_STR(get(&b, "employeeIdToCountry", "1700", NULL), "\"UK\"");
        CHECK_STR(get(&b, "employeeIdToCountry", "1701", NULL), "-");
        CHECK_STR(get(&b, "employeeIdToCountry", "203", NULL), "\"U<K & A\"");
        CHECK_STR(get(&b, "user_app_sessions", "user1_app1", "2024-01-01T08:25:22.022Z"),
                  "2024-01-01T08:10:22.023Z 2024-01-01T08:25:22.023Z");
        CHECK_STR(get(&b, "user_app_sessions", "user1_app1", "2024-01-01T08:25:22.023Z"), "-");
    }
}

TEST(a_row_without_a_time_is_effective_from_its_load_on)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();

    load(&b, SM_JSON_LINES, "{\"map\":\"cityToCountry\",\"key\":\"k\",\"value\":\"v\"}");
    CHECK_STR(get(&b, "citytocountry", "k", "1970-01-20T16:13:19.999Z"), "-");
    CHECK_STR(get(&b, "citytocountry", "k", "1970-01-20T16:13:20Z"), "\"v\"");
}

TEST(json_lines_have_types_of_their_own)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();

    load(&b, SM_JSON_LINES,
         "{\"map\":\"countryToCity\",\"key\":\"s\",\"value\":\"12\"}\r\n\n"
         "{\"map\":\"countryToCity\",\"key\":\"i\",\"value\":-9223372036854775808}\n"
         "{\"map\":\"countryToCity\",\"key\":\"d\",\"value\":1.5}\n"
         "{\"map\":\"countryToCity\",\"key\":\"b\",\"value\":true}\n"
         "{\"map\":\"countryToCity\",\"key\":\"j\",\"value\":{\"b\":[1,null],\"a\":\"x\"}}\n"
         "{\"map\":\"countryToCity\",\"key\":\"t\",\"type\":\"double\",\"value\":\"NaN\"}\n"
         "{\"map\":\"doubles\",\"key\":\"d\",\"value\":3}\n"
         "{\"map\":\"objects\",\"key\":\"text\",\"value\":\"x\"}\n"
         "{\"map\":\"site\",\"from\":1,\"to\":5,\"value\":7}\n"
         "{\"map\":\"site\",\"key\":3,\"value\":8}\n"
         "{\"map\":\"sessions\",\"key\":\"u\",\"start\":\"2024-01-01T00:00:00Z\"}\n"
         "{\"map\":\"sessions\",\"key\":\"v\",\"start\":\"2024-01-01T00:00:00Z\",\"end\":\"2024-01-"
         "02T00:00:00Z\"}");
    CHECK_EQ(b.count.rows, 12);
    CHECK_STR(get(&b, "countrytocity", "s", NULL), "\"12\"");
    CHECK_STR(get(&b, "countrytocity", "i", NULL), "-9223372036854775808");
    CHECK_STR(get(&b, "countrytocity", "d", NULL), "1.5");
    CHECK_STR(get(&b, "countrytocity", "b", NULL), "true");
    CHECK_STR(get(&b, "countrytocity", "j", NULL), "{\"a\":\"x\",\"b\":[1,null]}");
    CHECK_STR(get(&b, "countrytocity", "t", NULL), "\"NaN\"");
    CHECK_STR(get(&b, "doubles", "d", NULL), "3.0");
    CHECK_STR(get(&b, "objects", "text", NULL), "\"x\"");
    CHECK_STR(get(&b, "site", "5", NULL), "7");
    CHECK_STR(get(&b, "site", "3", NULL), "8");
    CHECK_STR(get(&b, "sessions", "u", "2024-01-01T00:05:00Z"),
              "2024-01-01T00:00:00Z 2024-01-01T00:10:00Z");
    CHECK_STR(get(&b, "sessions", "v", "2024-01-01T20:00:00Z"),
              "2024-01-01T00:00:00Z 2024-01-02T00:00:00Z");
}

TEST(csv_has_quotes_lines_in_them_and_columns_in_any_order)
{
    static const char text[] = "\xef\xbb\xbfvalue,key,map\r\n"
                               "\"a, \"\"b\"\"\nc\",k,countrytocity\r\n"
                               "\r\n"
                               ",empty,countrytocity\n"
                               "42,i,integers";
    static const size_t pieces[] = { 1, 5, 1000 };

    for (size_t i = 0; i < QF_COUNT_OF(pieces); i++) {
        QF_CLEANUP(bench_done) struct bench b = bench_open();

        CHECK_OK(load_pieces(&b, SM_CSV, text, pieces[i], false), &b.err);
        CHECK_EQ(b.count.rows, 3);
        CHECK_STR(get(&b, "countrytocity", "k", NULL), "\"a, \\\"b\\\"\\nc\"");
        CHECK_STR(get(&b, "countrytocity", "empty", NULL), "\"\"");
        CHECK_STR(get(&b, "integers", "i", NULL), "42");
    }
}

#define XML(rows) "<referenceData>\n" rows "</referenceData>"
#define REFERENCE(map, rest) XML("<reference>\n<map>" map "</map>\n" rest "</reference>\n")

TEST(xml_that_is_wrong_is_refused_with_its_line)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();

    CHECK(strstr(refused(&b, SM_XML, "<referenceData>\n<reference>\n<map>a</key>"),
                 "line 3: no XML: "));
    CHECK(strstr(refused(&b, SM_XML, "<referenceData>\n<reference>"), "no XML: "));
    CHECK(strstr(refused(&b, SM_XML, ""), "no XML: "));
    CHECK(strstr(refused(&b, SM_XML, "no xml"), "no XML: "));
    CHECK_STR(refused(&b, SM_XML, "<other/>"),
              "line 1: the root is one element referenceData, not other");
    CHECK(strstr(refused(&b, SM_XML, "<!DOCTYPE r [<!ENTITY a \"b\">]>\n<referenceData/>"),
                 "a document type is not read"));
    CHECK(strstr(refused(&b, SM_XML, REFERENCE("countryToCity", "<key>&a;</key><value>v</value>")),
                 "line 4: no XML: "));
    CHECK_STR(refused(&b, SM_XML, "<?xml version=\"1.0\" encoding=\"latin1\"?><referenceData/>"),
              "line 1: only UTF-8 is read");
    CHECK_STR(refused(&b, SM_XML, XML("<thing/>")), "line 2: there is no element thing");
    CHECK_STR(refused(&b, SM_XML, XML("text")), "line 2: text stands between elements: text");
    CHECK_STR(refused(&b, SM_XML, REFERENCE("countryToCity", "<colour/>")),
              "line 2: there is an element that no row has");
    CHECK_STR(refused(&b, SM_XML, REFERENCE("countryToCity", "<key>a</key><key>b</key>")),
              "line 2: an element is there twice");
    CHECK_STR(
        refused(&b, SM_XML, REFERENCE("countryToCity", "<key>a</key><value><b>x</b></value>")),
        "line 2: a value, or what else it says, has elements");
    CHECK_STR(refused(&b, SM_XML, REFERENCE("sessions", "<key>a</key>")),
              "line 2: a reference is no row of the session map sessions");
    CHECK_STR(refused(&b, SM_XML, XML("<session><map>countryToCity</map><key>a</key></session>")),
              "line 2: a session is no row of the state map countrytocity");
    CHECK(strstr(refused(&b, SM_XML, "<referenceData><reference><map>\xff</map>"),
                 "line 1: no XML: "));
}

#define JSON(map, rest) "\n{\"map\":\"" map "\"," rest "}\n"

TEST(json_that_is_wrong_is_refused_with_its_line)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();

    CHECK(strstr(refused(&b, SM_JSON_LINES, "\n\n{\"map\":"), "line 3: no JSON object: "));
    CHECK_STR(refused(&b, SM_JSON_LINES, "[1]"), "line 1: no JSON object: something else");
    CHECK(strstr(refused(&b, SM_JSON_LINES, "{\"key\":\"a\",\"key\":\"b\"}"),
                 "line 1: no JSON object: duplicate"));
    CHECK_STR(refused(&b, SM_JSON_LINES, "{\"colour\":1}"), "line 1: there is no member colour");
    CHECK_STR(refused(&b, SM_JSON_LINES, "{\"key\":\"a\",\"value\":1}"),
              "line 1: the row does not say its map");
    CHECK_STR(refused(&b, SM_JSON_LINES, JSON("other", "\"key\":\"a\"")),
              "line 2: there is no map other");
    CHECK(strstr(refused(&b, SM_JSON_LINES, JSON("a-b", "\"key\":\"a\"")),
                 "line 2: a-b is no name of a map"));
    CHECK_STR(refused(&b, SM_JSON_LINES, JSON("countrytocity", "\"key\":true,\"value\":1")),
              "line 2: key is no text");
    CHECK_STR(refused(&b, SM_JSON_LINES, JSON("countrytocity", "\"key\":\"\",\"value\":1")),
              "line 2: the key is empty");
    CHECK_STR(refused(&b, SM_JSON_LINES, JSON("countrytocity", "\"value\":1")),
              "line 2: the row has no key");
    CHECK_STR(refused(&b, SM_JSON_LINES, JSON("countrytocity", "\"key\":\"a\"")),
              "line 2: the row has no value");
    CHECK_STR(
        refused(&b, SM_JSON_LINES, JSON("countrytocity", "\"key\":\"a\",\"from\":1,\"value\":1")),
        "line 2: from is nothing that a row of the state map countrytocity has");
    CHECK_STR(refused(&b, SM_JSON_LINES, JSON("integers", "\"key\":\"a\",\"value\":1.5")),
              "line 2: the value is a double, not a integer");
    CHECK_STR(refused(&b, SM_JSON_LINES, JSON("integers", "\"key\":\"a\",\"value\":\"1\"")),
              "line 2: the value is a string, not a integer");
    CHECK_STR(refused(&b, SM_JSON_LINES,
                      JSON("integers", "\"key\":\"a\",\"type\":\"string\",\"value\":\"1\"")),
              "line 2: the values of map integers are integer");
    CHECK(strstr(refused(&b, SM_JSON_LINES,
                         JSON("integers", "\"key\":\"a\",\"type\":\"x\",\"value\":\"1\"")),
                 "line 2: the type is none"));
    CHECK_STR(refused(&b, SM_JSON_LINES, JSON("site", "\"from\":5,\"to\":1,\"value\":1")),
              "line 2: the range ends before it begins");
    CHECK_STR(refused(&b, SM_JSON_LINES, JSON("site", "\"from\":5,\"value\":1")),
              "line 2: the row has neither a key nor both from and to");
    CHECK_STR(refused(&b, SM_JSON_LINES, JSON("site", "\"key\":5,\"to\":1,\"value\":1")),
              "line 2: the row has a key and a range");
    CHECK_STR(refused(&b, SM_JSON_LINES, JSON("site", "\"key\":\"x\",\"value\":1")),
              "line 2: key is no integer of 64 bits");
    CHECK(strstr(refused(&b, SM_JSON_LINES,
                         JSON("citytocountry", "\"key\":\"a\",\"time\":\"today\",\"value\":\"v\"")),
                 "line 2: time is no time like"));
    CHECK_STR(refused(&b, SM_JSON_LINES, JSON("user_app_sessions", "\"key\":\"a\"")),
              "line 2: the session has neither end nor timeout, and its map none");
    CHECK_STR(refused(&b, SM_JSON_LINES, JSON("sessions", "\"key\":\"a\",\"timeout\":\"soon\"")),
              "line 2: timeout is no duration like 15m");
    CHECK_STR(refused(&b, SM_JSON_LINES, JSON("sessions", "\"key\":\"a\",\"timeout\":\"0\"")),
              "line 2: the session does not end after its start");
    CHECK_STR(refused(&b, SM_JSON_LINES,
                      JSON("sessions", "\"key\":\"a\",\"start\":\"2024-01-02T00:00:00Z\",\"end\":"
                                       "\"2024-01-01T00:00:00Z\"")),
              "line 2: the session does not end after its start");
    CHECK_STR(refused(&b, SM_JSON_LINES, JSON("sessions", "\"key\":\"a\",\"value\":1")),
              "line 2: value is nothing that a row of the session map sessions has");
}

TEST(csv_that_is_wrong_is_refused_with_its_line)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();

    CHECK_STR(refused(&b, SM_CSV, ""), "line 1: there is no head with the names of columns");
    CHECK_STR(refused(&b, SM_CSV, "map,colour\n"), "line 1: there is no column \"colour\"");
    CHECK_STR(refused(&b, SM_CSV, "map,map\n"), "line 1: the column map is there twice");
    CHECK_STR(refused(&b, SM_CSV, "map,key,value\nintegers,a,1\nintegers,a\n"),
              "line 3: it has not as many fields as the head");
    CHECK_STR(refused(&b, SM_CSV, "map,key,value\nintegers,\"a\nb\",1\nintegers,a,x\n"),
              "line 4: the value is no integer of 64 bits");
    CHECK_STR(refused(&b, SM_CSV, "map,key,value\nintegers,\"a,1\n"),
              "line 2: the quotes of a field are not closed");
    CHECK_STR(refused(&b, SM_CSV, "map,key,value\nintegers,\"a\"b,1\n"),
              "line 2: something stands behind the quotes of a field");
    CHECK_STR(refused(&b, SM_CSV, "map,key,value\nintegers,a\"b,1\n"),
              "line 2: a quote stands within a field");
    CHECK_STR(refused(&b, SM_CSV, "map,key,value\ncountrytocity,a\xff,1\n"),
              "line 2: the key is not UTF-8");
    CHECK(strstr(refused(&b, SM_CSV, "map,key,value\nobjects,a,{\n"),
                 "line 2: the value is no JSON: "));
}

TEST(nothing_of_a_load_that_is_refused_counts)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();

    load(&b, SM_CSV, "map,key,value\nintegers,a,1\n");
    CHECK_STR(refused(&b, SM_CSV, "map,key,value\nintegers,a,2\nintegers,b,2\nintegers,c,x\n"),
              "line 4: the value is no integer of 64 bits");
    CHECK_STR(get(&b, "integers", "a", NULL), "1");
    CHECK_STR(get(&b, "integers", "b", NULL), "-");
}

TEST(wrong_rows_can_be_skipped_and_are_counted)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();

    CHECK_OK(load_pieces(&b, SM_CSV, "map,key,value\nintegers,a,x\nintegers,b,2\nnowhere,c,3\n", 9,
                         true),
             &b.err);
    CHECK_EQ(b.count.rows, 1);
    CHECK_EQ(b.count.skipped, 2);
    CHECK_STR(b.skipped, "line 4: there is no map nowhere");
    CHECK_OK(load_pieces(&b, SM_JSON_LINES, "{\n{\"map\":\"integers\",\"key\":\"j\",\"value\":3}\n",
                         9, true),
             &b.err);
    CHECK_EQ(b.count.skipped, 1);
    CHECK_OK(load_pieces(&b, SM_XML, REFERENCE("nowhere", "<key>a</key><value>1</value>"), 9, true),
             &b.err);
    CHECK_EQ(b.count.skipped, 1);
    CHECK_STR(get(&b, "integers", "b", NULL), "2");
    CHECK_STR(get(&b, "integers", "j", NULL), "3");
    CHECK_EQ(load_pieces(&b, SM_XML, "<referenceData>", 9, true), QF_EINVAL);
}

TEST(what_is_too_long_is_refused_before_it_is_kept)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    size_t len = SM_RECORD_MAX + 100;
    char *text = qf_xmalloc(len + 1);

    memset(text, 'a', len);
    text[len] = '\0';
    CHECK_EQ(load_pieces(&b, SM_JSON_LINES, text, 1 << 16, true), QF_EINVAL);
    CHECK(strstr(b.err.msg, "line 1: longer than 4194304 bytes"));
    CHECK_EQ(load_pieces(&b, SM_CSV, text, 1 << 16, true), QF_EINVAL);
    memcpy(text, "<referenceData x=\"", 18);
    CHECK_EQ(load_pieces(&b, SM_XML, text, 1 << 16, true), QF_EINVAL);
    CHECK(strstr(b.err.msg, "longer than 4194304 bytes"));
    free(text);
}
