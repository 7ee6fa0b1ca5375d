/* Transports on the loopback: who gets through to whom, and what happens to those who do not. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "queue/peer/peer.h"
#include "tests/lib/test.h"
#include "tests/unit/queue/peer/endpoint.h"

/* b, and a that dials it. */
struct pair {
    struct endpoint a, b;
    struct qp_address to_b;
};

static void pair_start(struct pair *pair)
{
    struct qp_options options = endpoint_options("b", NULL, 0);

    endpoint_start(&pair->b, &options);
    pair->to_b = (struct qp_address){ "b", endpoint_address(&pair->b) };
    options = endpoint_options("a", &pair->to_b, 1);
    endpoint_start(&pair->a, &options);
    endpoint_await_state(&pair->a, "b", QP_CONNECTED);
    endpoint_await_state(&pair->b, "a", QP_CONNECTED);
}

static void pair_stop(struct pair *pair)
{
    endpoint_stop(&pair->a);
    endpoint_stop(&pair->b);
}

/* One stream is enough for both directions: b was given nobody's address. */
TEST(messages_go_both_ways_over_one_stream)
{
    struct pair pair = { 0 };

    pair_start(&pair);
    CHECK(qp_send(pair.a.peers, "b", "metrics-0", QF_STR("to b")));
    endpoint_await_messages(&pair.b, 1);
    CHECK_STR(pair.b.last_from, "a");
    CHECK_STR(pair.b.last_queue, "metrics-0");
    CHECK_STR(pair.b.last_bytes, "to b");
    CHECK(qp_send(pair.b.peers, "a", "meta", QF_STR("to a")));
    endpoint_await_messages(&pair.a, 1);
    CHECK_STR(pair.a.last_from, "b");
    CHECK_STR(pair.a.last_bytes, "to a");
    pair_stop(&pair);
}

TEST(three_nodes_that_dial_each_other_all_hear_each_other)
{
    struct endpoint nodes[3] = { 0 };
    static const char *const names[] = { "a", "b", "c" };
    struct qp_address addresses[3][2];

    /* The first knows nobody, the second the first, the third both. */
    for (size_t i = 0; i < 3; i++) {
        struct qp_options options = endpoint_options(names[i], addresses[i], i);

        for (size_t j = 0; j < i; j++)
            addresses[i][j] = (struct qp_address){ names[j], endpoint_address(&nodes[j]) };
        endpoint_start(&nodes[i], &options);
    }
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            if (i != j) {
                endpoint_await_state(&nodes[i], names[j], QP_CONNECTED);
                CHECK(qp_send(nodes[i].peers, names[j], "q", QF_STR("x")));
            }
    for (size_t i = 0; i < 3; i++)
        endpoint_await_messages(&nodes[i], 2);
    for (size_t i = 0; i < 3; i++)
        endpoint_stop(&nodes[i]);
}

TEST(messages_of_one_peer_keep_their_order)
{
    struct pair pair = { 0 };
    char text[16];

    pair_start(&pair);
    for (int i = 1; i <= 500; i++) {
        (void)snprintf(text, sizeof(text), "%d", i);
        CHECK(qp_send(pair.a.peers, "b", "q", qf_str_from(text)));
    }
    endpoint_await_messages(&pair.b, 500);
    CHECK_STR(pair.b.last_bytes, "500");
    CHECK_EQ(endpoint_stat(&pair.a, "b").messages_dropped, 0);
    CHECK_EQ(endpoint_stat(&pair.a, "b").messages_sent, 500);
    pair_stop(&pair);
}

TEST(a_call_is_answered_with_bytes_or_an_error)
{
    struct pair pair = { 0 };

    pair_start(&pair);
    CHECK_EQ(qp_call(pair.a.peers, "b", "echo", QF_STR("hi"), 5000, endpoint_answered, &pair.a),
             QF_OK);
    endpoint_await_answers(&pair.a, 1);
    CHECK_EQ(pair.a.answer_rc, QF_OK);
    CHECK_STR(pair.a.answer, "hi");
    CHECK_EQ(qp_call(pair.b.peers, "a", "fail", QF_STR(""), 5000, endpoint_answered, &pair.b),
             QF_OK);
    endpoint_await_answers(&pair.b, 1);
    CHECK_EQ(pair.b.answer_rc, QF_EBUSY);
    CHECK_STR(pair.b.answer, "not now");
    pair_stop(&pair);
}

/* Without an answer: the deadline; without a stream: at once; when it stops: canceled. */
TEST(a_call_that_nobody_answers_ends_once)
{
    struct pair pair = { 0 };
    struct qp_reply *late;

    pair_start(&pair);
    CHECK_EQ(qp_call(pair.a.peers, "c", "echo", QF_STR(""), 100, endpoint_answered, &pair.a),
             QF_EUNAVAILABLE);
    CHECK_EQ(qp_call(pair.a.peers, "b", "hold", QF_STR(""), 100, endpoint_answered, &pair.a),
             QF_OK);
    endpoint_await_answers(&pair.a, 1);
    CHECK_EQ(pair.a.answer_rc, QF_ETIMEOUT);
    late = endpoint_held(&pair.b);
    CHECK(late);
    qp_reply(late, QF_OK, QF_STR("too late"));
    CHECK_EQ(qp_call(pair.a.peers, "b", "echo", QF_STR(""), 5000, endpoint_answered, &pair.a),
             QF_OK);
    endpoint_await_answers(&pair.a, 2);
    CHECK_EQ(pair.a.answer_rc, QF_OK); /* the late one was not taken for it */
    CHECK_EQ(qp_call(pair.a.peers, "b", "hold", QF_STR(""), 60000, endpoint_answered, &pair.a),
             QF_OK);
    pair.a.peers = qp_stop(pair.a.peers);
    CHECK_EQ(pair.a.answers, 3);
    CHECK_EQ(pair.a.answer_rc, QF_ECANCELED);
    pair.b.peers = qp_stop(pair.b.peers);
    if (pair.b.held != late) /* it may not have arrived */
        qp_reply(pair.b.held, QF_OK, QF_STR("to nobody"));
    pair.a.lock = qf_lock_free(pair.a.lock);
    pair.b.lock = qf_lock_free(pair.b.lock);
}

TEST(a_call_to_a_node_that_dies_ends_with_it)
{
    struct pair pair = { 0 };

    pair_start(&pair);
    CHECK_EQ(qp_call(pair.a.peers, "b", "hold", QF_STR(""), 60000, endpoint_answered, &pair.a),
             QF_OK);
    pair.b.peers = qp_stop(pair.b.peers);
    endpoint_await_answers(&pair.a, 1);
    CHECK_EQ(pair.a.answer_rc, QF_EUNAVAILABLE);
    if (pair.b.held)
        qp_reply(pair.b.held, QF_OK, QF_STR(""));
    pair.b.lock = qf_lock_free(pair.b.lock);
    endpoint_stop(&pair.a);
}

TEST(a_node_that_comes_back_is_found_again)
{
    struct pair pair = { 0 };
    struct qp_options options;
    char listen[32];

    pair_start(&pair);
    (void)snprintf(listen, sizeof(listen), "%s", pair.to_b.address);
    endpoint_stop(&pair.b);
    endpoint_await_state(&pair.a, "b", QP_UNREACHABLE);
    CHECK(!qp_send(pair.a.peers, "b", "q", QF_STR("lost")));
    CHECK(endpoint_stat(&pair.a, "b").messages_dropped >= 1);
    pair.b = (struct endpoint){ 0 };
    options = endpoint_options("b", NULL, 0);
    options.listen = listen;
    endpoint_start(&pair.b, &options);
    endpoint_await_state(&pair.a, "b", QP_CONNECTED);
    CHECK(qp_send(pair.a.peers, "b", "q", QF_STR("again")));
    endpoint_await_messages(&pair.b, 1);
    CHECK_STR(pair.b.last_bytes, "again");
    CHECK_EQ(endpoint_stat(&pair.a, "b").connects, 2);
    pair_stop(&pair);
}

TEST(a_node_of_another_cluster_is_refused_on_both_sides)
{
    struct endpoint a = { 0 }, b = { 0 };
    struct qp_options options = endpoint_options("b", NULL, 0);
    struct qp_address to_b;

    options.cluster = 8;
    endpoint_start(&b, &options);
    to_b = (struct qp_address){ "b", endpoint_address(&b) };
    options = endpoint_options("a", &to_b, 1);
    endpoint_start(&a, &options);
    endpoint_await_state(&a, "b", QP_WRONG_CLUSTER);
    endpoint_await_state(&b, "a", QP_WRONG_CLUSTER);
    CHECK(!qp_send(a.peers, "b", "q", QF_STR("x")));
    CHECK_EQ(b.messages, 0);
    endpoint_stop(&a);
    endpoint_stop(&b);
}

/* What goes to stderr is kept in a file meanwhile. */
struct heard {
    FILE *file;
    int stderr_was;
};

static struct heard listen_to_log(void)
{
    struct heard heard = { tmpfile(), dup(2) };

    CHECK(heard.file && heard.stderr_was >= 0);
    CHECK(dup2(fileno(heard.file), 2) == 2);
    return heard;
}

/* How many of the lines have @text; the log goes where it went before. */
static size_t heard_lines(struct heard *heard, const char *text)
{
    char line[4096];
    size_t count = 0;

    CHECK(dup2(heard->stderr_was, 2) == 2);
    (void)close(heard->stderr_was);
    rewind(heard->file);
    while (fgets(line, sizeof(line), heard->file))
        count += strstr(line, text) != NULL;
    (void)fclose(heard->file);
    return count;
}

/* Two nodes that speak versions @a and @b: which they agree on; 0: none. */
static uint32_t agree(uint32_t a_oldest, uint32_t a_newest, uint32_t b_oldest, uint32_t b_newest)
{
    struct endpoint a = { 0 }, b = { 0 };
    struct qp_options options = endpoint_options("b", NULL, 0);
    enum qp_state state;
    struct qp_address to_b;
    uint32_t protocol;

    options.protocol_oldest = b_oldest;
    options.protocol_newest = b_newest;
    endpoint_start(&b, &options);
    to_b = (struct qp_address){ "b", endpoint_address(&b) };
    options = endpoint_options("a", &to_b, 1);
    options.protocol_oldest = a_oldest;
    options.protocol_newest = a_newest;
    endpoint_start(&a, &options);
    state =
        QF_MIN(a_newest, b_newest) < QF_MAX(a_oldest, b_oldest) ? QP_WRONG_VERSION : QP_CONNECTED;
    endpoint_await_state(&a, "b", state);
    endpoint_await_state(&b, "a", state);
    protocol = endpoint_stat(&a, "b").protocol;
    CHECK_EQ(endpoint_stat(&b, "a").protocol, protocol);
    endpoint_stop(&a);
    endpoint_stop(&b);
    return protocol;
}

/* Whoever dials, and whichever is the newer one. */
TEST(nodes_of_two_releases_speak_the_newest_version_that_both_do)
{
    CHECK_EQ(agree(1, 1, 1, 2), 1);
    CHECK_EQ(agree(1, 2, 1, 1), 1);
    CHECK_EQ(agree(1, 2, 2, 3), 2);
    CHECK_EQ(agree(1, 3, 1, 2), 2);
    CHECK_EQ(agree(2, 3, 1, 1), 0);
    CHECK_EQ(agree(1, 1, 2, 2), 0);
}

/* Each side says once what is wrong, however often it is dialled. */
TEST(a_node_of_another_protocol_version_is_refused_on_both_sides)
{
    struct heard heard = listen_to_log();
    struct endpoint a = { 0 }, b = { 0 };
    struct qp_options options = endpoint_options("b", NULL, 0);
    struct qp_address to_b;

    options.protocol_oldest = qp_protocol_newest + 1;
    options.protocol_newest = qp_protocol_newest + 2;
    endpoint_start(&b, &options);
    to_b = (struct qp_address){ "b", endpoint_address(&b) };
    options = endpoint_options("a", &to_b, 1);
    endpoint_start(&a, &options);
    endpoint_await_state(&a, "b", QP_WRONG_VERSION);
    endpoint_await_state(&b, "a", QP_WRONG_VERSION);
    CHECK_STR(endpoint_stat(&a, "b").why, "node b speaks versions 2 to 3, node a versions 1 to 1");
    CHECK_STR(endpoint_stat(&b, "a").why, "node b speaks versions 2 to 3, node a versions 1 to 1");
    CHECK(!qp_send(a.peers, "b", "q", QF_STR("x")));
    (void)poll(NULL, 0, 500); /* some more attempts */
    CHECK_EQ(endpoint_stat(&a, "b").state, QP_WRONG_VERSION);
    CHECK_EQ(b.messages, 0);
    endpoint_stop(&a);
    endpoint_stop(&b);
    CHECK_EQ(heard_lines(&heard, "peer speaks no protocol version that this node does"), 2);
}

/* A new node is in no cluster until it was taken into one; then it belongs to that one alone. */
TEST(a_node_without_a_cluster_fits_any_until_it_has_one)
{
    struct endpoint a = { 0 }, b = { 0 };
    struct qp_options options = endpoint_options("b", NULL, 0);
    struct qp_address to_b;

    endpoint_start(&b, &options);
    to_b = (struct qp_address){ "b", endpoint_address(&b) };
    options = endpoint_options("a", &to_b, 1);
    options.cluster = 0;
    endpoint_start(&a, &options);
    endpoint_await_state(&a, "b", QP_CONNECTED);
    CHECK_EQ(endpoint_stat(&a, "b").cluster, 7);
    qp_set_cluster(a.peers, 8);
    endpoint_await_state(&a, "b", QP_WRONG_CLUSTER);
    qp_set_cluster(a.peers, 7);
    endpoint_await_state(&a, "b", QP_CONNECTED);
    endpoint_stop(&a);
    endpoint_stop(&b);
}

TEST(an_address_where_another_node_answers_is_named)
{
    struct endpoint a = { 0 }, b = { 0 };
    struct qp_options options = endpoint_options("b", NULL, 0);
    struct qp_address wrong;

    endpoint_start(&b, &options);
    wrong = (struct qp_address){ "c", endpoint_address(&b) };
    options = endpoint_options("a", &wrong, 1);
    endpoint_start(&a, &options);
    endpoint_await_state(&a, "c", QP_WRONG_NAME);
    CHECK_STR(endpoint_stat(&a, "c").why, "this is node b");
    endpoint_stop(&a);
    endpoint_stop(&b);
}

/* The first that came stays; the second is told why it does not get in. */
TEST(of_two_nodes_with_one_name_the_second_is_refused)
{
    struct pair pair = { 0 };
    struct endpoint second = { 0 };
    struct qp_options options;

    pair_start(&pair);
    options = endpoint_options("a", &pair.to_b, 1);
    endpoint_start(&second, &options);
    endpoint_await_state(&second, "b", QP_SAME_NAME);
    endpoint_await_state(&pair.b, "a", QP_SAME_NAME);
    CHECK(qp_send(pair.a.peers, "b", "q", QF_STR("still here")));
    endpoint_await_messages(&pair.b, 1);
    endpoint_stop(&second);
    endpoint_await_state(&pair.b, "a", QP_CONNECTED); /* alone again */
    pair_stop(&pair);
}

TEST(a_node_that_has_our_own_name_is_refused)
{
    struct endpoint a = { 0 }, other = { 0 };
    struct qp_options options = endpoint_options("a", NULL, 0);
    struct qp_address wrong;

    endpoint_start(&a, &options);
    wrong = (struct qp_address){ "c", endpoint_address(&a) };
    options = endpoint_options("a", &wrong, 1);
    endpoint_start(&other, &options);
    endpoint_await_state(&other, "c", QP_SAME_NAME);
    CHECK_STR(endpoint_stat(&other, "c").why, "another node is called a as well");
    endpoint_await_state(&a, "a", QP_SAME_NAME);
    endpoint_stop(&other);
    endpoint_stop(&a);
}

TEST(a_node_that_dials_itself_is_told_so)
{
    struct endpoint a = { 0 };
    struct qp_address self = { "b", endpoint_nowhere() };
    struct qp_options options = endpoint_options("a", &self, 1);

    options.listen = self.address;
    endpoint_start(&a, &options);
    endpoint_await_state(&a, "b", QP_WRONG_NAME);
    CHECK_STR(endpoint_stat(&a, "b").why, "node a was given its own address as a peer's");
    endpoint_stop(&a);
}

TEST(a_node_given_its_own_name_as_a_peer_does_not_start)
{
    struct qp_address self = { "a", "127.0.0.1:1" };
    struct qp_options options = endpoint_options("a", &self, 1);
    struct qp_callbacks callbacks = { 0 };
    struct qp_peers *peers;
    struct qf_err err = { 0 };

    CHECK_EQ(qp_start(&options, &callbacks, &peers, &err), QF_EINVAL);
    CHECK_STR(err.msg, "a: a peer has this node's own name");
}

TEST(a_taken_address_is_an_error)
{
    struct pair pair = { 0 };
    struct qp_options options;
    struct qp_callbacks callbacks = { 0 };
    struct qp_peers *peers;
    struct qf_err err = { 0 };

    pair_start(&pair);
    options = endpoint_options("c", NULL, 0);
    options.listen = pair.to_b.address;
    CHECK_EQ(qp_start(&options, &callbacks, &peers, &err), QF_EIO);
    pair_stop(&pair);
}

TEST(nobody_at_the_address_is_unreachable)
{
    struct endpoint a = { 0 };
    struct qp_address nowhere = { "b", endpoint_nowhere() };
    struct qp_options options = endpoint_options("a", &nowhere, 1);

    endpoint_start(&a, &options);
    endpoint_await_state(&a, "b", QP_UNREACHABLE);
    CHECK(endpoint_stat(&a, "b").why[0]);
    endpoint_stop(&a);
}

/* The queue takes what it may hold, the rest is dropped and counted; nothing waits. */
TEST(a_slow_reader_costs_messages_not_time)
{
    struct pair pair = { 0 };
    struct qp_options options = endpoint_options("b", NULL, 0);
    static char big[64 << 10];
    size_t taken = 0;
    qf_time_ms began;

    pair.b.delay_ms = 100;
    endpoint_start(&pair.b, &options);
    pair.to_b = (struct qp_address){ "b", endpoint_address(&pair.b) };
    options = endpoint_options("a", &pair.to_b, 1);
    options.queue_messages_max = 20;
    endpoint_start(&pair.a, &options);
    endpoint_await_state(&pair.a, "b", QP_CONNECTED);
    began = qf_clock_mono_ms();
    for (int i = 0; i < 2000; i++)
        taken += qp_send(pair.a.peers, "b", "q", (struct qf_str){ big, sizeof(big) });
    CHECK(qf_clock_mono_ms() - began < 5000);
    CHECK(taken >= 20);
    CHECK(taken < 2000);
    CHECK_EQ(endpoint_stat(&pair.a, "b").messages_dropped, 2000 - taken);
    CHECK(endpoint_stat(&pair.a, "b").queued_messages <= 20);
    pair_stop(&pair);
}

TEST(a_peer_that_does_not_read_is_cut_and_dialled_again)
{
    struct pair pair = { 0 };
    struct qp_options options = endpoint_options("b", NULL, 0);
    static char big[1 << 20];
    qf_time_ms end;

    pair.b.delay_ms = 1500; /* with every message: its transport stands still */
    options.silence_ms = 60000;
    endpoint_start(&pair.b, &options);
    pair.to_b = (struct qp_address){ "b", endpoint_address(&pair.b) };
    options = endpoint_options("a", &pair.to_b, 1);
    options.queue_messages_max = 4;
    options.stuck_ms = 200;
    options.silence_ms = 60000;
    endpoint_start(&pair.a, &options);
    endpoint_await_state(&pair.a, "b", QP_CONNECTED);
    end = qf_clock_mono_ms() + 10000;
    while (!endpoint_stat(&pair.a, "b").cuts && qf_clock_mono_ms() < end) {
        (void)qp_send(pair.a.peers, "b", "q", (struct qf_str){ big, sizeof(big) });
        (void)usleep(1000);
    }
    CHECK(endpoint_stat(&pair.a, "b").cuts >= 1);
    CHECK_STR(endpoint_stat(&pair.a, "b").why, "the peer does not read what it is sent");
    qf_lock_take(pair.b.lock);
    pair.b.delay_ms = 0;
    qf_lock_drop(pair.b.lock);
    end = qf_clock_mono_ms() + 10000;
    while (endpoint_stat(&pair.a, "b").connects < 2 && qf_clock_mono_ms() < end)
        (void)usleep(5000);
    CHECK(endpoint_stat(&pair.a, "b").connects >= 2);
    pair_stop(&pair);
}

TEST(a_silent_peer_is_cut)
{
    struct pair pair = { 0 };
    struct qp_options options = endpoint_options("b", NULL, 0);
    qf_time_ms end = qf_clock_mono_ms() + 10000;

    pair.b.delay_ms = 1500;
    endpoint_start(&pair.b, &options);
    pair.to_b = (struct qp_address){ "b", endpoint_address(&pair.b) };
    options = endpoint_options("a", &pair.to_b, 1);
    options.silence_ms = 500;
    endpoint_start(&pair.a, &options);
    endpoint_await_state(&pair.a, "b", QP_CONNECTED);
    CHECK(qp_send(pair.a.peers, "b", "q", QF_STR("sleep")));
    while (!endpoint_stat(&pair.a, "b").cuts && qf_clock_mono_ms() < end)
        (void)usleep(5000);
    CHECK_EQ(endpoint_stat(&pair.a, "b").cuts, 1);
    endpoint_await_state(&pair.a, "b", QP_CONNECTED);
    pair_stop(&pair);
}

TEST(the_largest_message_passes_and_a_larger_one_is_not_sent)
{
    struct pair pair = { 0 };
    char *bytes = qf_xcalloc(1, QP_BYTES_MAX + 1);

    pair_start(&pair);
    CHECK(!qp_send(pair.a.peers, "b", "q", (struct qf_str){ bytes, QP_BYTES_MAX + 1 }));
    CHECK(qp_send(pair.a.peers, "b", "q", (struct qf_str){ bytes, QP_BYTES_MAX }));
    endpoint_await_messages(&pair.b, 1);
    CHECK_EQ(pair.b.last_len, QP_BYTES_MAX);
    CHECK_EQ(endpoint_stat(&pair.a, "b").connects, 1);
    pair_stop(&pair);
    free(bytes);
}

static void make_certificates(const char *dir)
{
    char command[2048];

    (void)snprintf(
        command, sizeof(command),
        "cd %s && new() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
        "-keyout $1.key -out $1.csr -subj /CN=$2 && printf 'subjectAltName=DNS:%%s' $2 > "
        "$1.ext && openssl x509 -req -in $1.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days "
        "2 -extfile $1.ext -out $1.crt; } && { openssl req -x509 -newkey ec -pkeyopt "
        "ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.crt -subj /CN=ca -days 2 && new "
        "ingest promfabric-ingest && new worker promfabric-worker; } 2>/dev/null",
        dir);
    CHECK_EQ(system(command), 0);
}

struct tls_texts {
    char ca[64], cert[64], key[64];
};

static void use_tls(struct qp_options *options, struct tls_texts *texts, const char *dir,
                    const char *who)
{
    (void)snprintf(texts->ca, sizeof(texts->ca), "%s/ca.crt", dir);
    (void)snprintf(texts->cert, sizeof(texts->cert), "%s/%s.crt", dir, who);
    (void)snprintf(texts->key, sizeof(texts->key), "%s/%s.key", dir, who);
    options->tls_ca_file = texts->ca;
    options->tls_cert_file = texts->cert;
    options->tls_key_file = texts->key;
    options->tls_peer_name = "promfabric-ingest";
}

/* Both sides show a certificate, and it must be that of an ingest node. */
TEST(with_tls_only_ingest_nodes_get_in)
{
    char dir[] = "/tmp/test_peer_XXXXXX", command[64];
    struct endpoint b = { 0 }, good = { 0 }, worker = { 0 }, plain = { 0 };
    struct qp_options options = endpoint_options("b", NULL, 0);
    struct tls_texts texts[3];
    struct qp_address to_b;

    if (system("openssl version >/dev/null 2>&1") != 0)
        test_skip("there is no openssl program to make certificates with");
    CHECK(mkdtemp(dir));
    make_certificates(dir);
    use_tls(&options, &texts[0], dir, "ingest");
    endpoint_start(&b, &options);
    to_b = (struct qp_address){ "b", endpoint_address(&b) };
    options = endpoint_options("good", &to_b, 1);
    use_tls(&options, &texts[1], dir, "ingest");
    endpoint_start(&good, &options);
    endpoint_await_state(&good, "b", QP_CONNECTED);
    CHECK(qp_send(good.peers, "b", "q", QF_STR("secret")));
    endpoint_await_messages(&b, 1);
    options = endpoint_options("worker", &to_b, 1);
    use_tls(&options, &texts[2], dir, "worker");
    endpoint_start(&worker, &options);
    endpoint_await_state(&worker, "b", QP_NOT_ALLOWED);
    options = endpoint_options("plain", &to_b, 1);
    endpoint_start(&plain, &options);
    endpoint_await_state(&plain, "b", QP_UNREACHABLE);
    endpoint_stop(&plain);
    endpoint_stop(&worker);
    endpoint_stop(&good);
    endpoint_stop(&b);
    (void)snprintf(command, sizeof(command), "rm -r %s", dir);
    CHECK_EQ(system(command), 0);
}
