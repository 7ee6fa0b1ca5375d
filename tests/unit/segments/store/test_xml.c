/* test_xml.c - the answers of S3 are read, and nothing else is. */
#include "base/pure/prng.h"
#include "base/pure/strbuf.h"
#include "segments/store/xml.h"
#include "tests/lib/test.h"

static qf_rc show(void *ctx, const struct xml_element *element, struct qf_err *err)
{
    struct qf_strbuf *buf = ctx;

    (void)err;
    qf_strbuf_printf(buf, "%d:%.*s/%.*s=[%.*s] ", element->depth, QF_STR_ARG(element->parent),
                     QF_STR_ARG(element->name), QF_STR_ARG(element->text));
    return QF_OK;
}

TEST(elements_come_with_their_decoded_text)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qf_err err = { 0 };

    CHECK_OK(xml_parse(QF_STR("<?xml version='1.0'?>\n<!-- c --><L xmlns=\"http://x/\">\n"
                              "  <C><K>a&amp;b&#x20;&#233;</K><E>&quot;1&quot;</E></C>"
                              "<s3:P at = '>'/><D><![CDATA[<&>]]></D></L >\n"),
                       show, &buf, &err),
             &err);
    CHECK_STR(qf_strbuf_cstr(&buf), "2:C/K=[a&b \xc3\xa9] 2:C/E=[\"1\"] 1:L/C=[] 1:L/P=[] "
                                    "1:L/D=[<&>] 0:/L=[] ");
}

TEST(anything_else_is_a_protocol_error)
{
    static const char *const bad[] = {
        "",
        "x",
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "</a>",
        "<a",
        "<a b=c/>",
        "<a>&unknown;</a>",
        "<a>&amp</a>",
        "<a>& b</a>",
        "<a>&#0;</a>",
        "<a>&#x110000;</a>",
        "<a>&#99999999999;</a>",
        "<a><![CDATA[x</a>",
        "<!-- x",
        "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>",
        "<a/>text",
        "&amp;<a/>",
        "<a><b><c><d><e><f><g><h><i><j><k><l><m><n><o><p><q></q></p></o></n></m></l></k></j></i>"
        "</h></g></f></e></d></c></b></a>",
    };

    for (size_t i = 0; i < QF_COUNT_OF(bad); i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

        CHECK_MSG(xml_parse(qf_str_from(bad[i]), show, &buf, NULL) == QF_EPROTO, "%s", bad[i]);
    }
    {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

        CHECK_EQ(xml_parse((struct qf_str){ "<a>b\0c</a>", 10 }, show, &buf, NULL), QF_EPROTO);
    }
}

/* Whatever a broken proxy sends, the parser ends. */
TEST(random_documents_end_without_harm)
{
    static const char pieces[][12] = { "<a>",       "</a>", "<b/>", "&amp;", "&#x41;", "text",
                                       "<![CDATA[", "]]>",  "<!--", "-->",   "<?",     "?>",
                                       "<a x='",    "'",    "&",    "<",     ">",      "/" };
    struct qf_prng prng = { 11 };

    for (int i = 0; i < 20000; i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf doc = QF_STRBUF_INIT, buf = QF_STRBUF_INIT;
        size_t count = qf_prng_below(&prng, 12);

        for (size_t j = 0; j < count; j++)
            qf_strbuf_puts(&doc, pieces[qf_prng_below(&prng, QF_COUNT_OF(pieces))]);
        (void)!xml_parse(qf_strbuf_view(&doc), show, &buf, NULL);
    }
}
