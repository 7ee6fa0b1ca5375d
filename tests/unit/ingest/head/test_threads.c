/* Readers beside the one writer: what they are told is a prefix of the log, whole records only. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys/thread.h"
#include "tests/lib/test.h"
#include "tests/unit/ingest/head/rig.h"

enum { READERS = 3, SERIES = 40, RECORDS = 100, READS = 5 };

struct reader {
    struct rig *rig;
    int number;
    atomic_bool *stop;
    uint64_t generation;
    atomic_uint reads;
    char wrong[256]; /* to be read when it has ended */
    atomic_bool failed;
};

/* A record writes its index to every series that there is by then: at cut P every series ends with
 * P, and there are as many samples as records since it began. */
static void check_answer(struct reader *reader, const char *text, uint64_t cut)
{
    size_t lines = 0;
    char end[32];

    (void)snprintf(end, sizeof(end), ":%" PRIu64, cut);
    for (const char *line = text, *next; *line; line = next + 1, lines++) {
        next = strchr(line, '\n');
        if ((size_t)(next - line) < strlen(end) ||
            memcmp(next - strlen(end), end, strlen(end)) != 0)
            (void)snprintf(reader->wrong, sizeof(reader->wrong), "cut %" PRIu64 ": %.100s", cut,
                           line);
    }
    if (lines != (cut < SERIES ? cut : SERIES))
        (void)snprintf(reader->wrong, sizeof(reader->wrong), "cut %" PRIu64 ": %zu series", cut,
                       lines);
}

static void read_on(void *arg)
{
    struct reader *reader = arg;
    struct rig own = { .head = reader->rig->head };

    (void)snprintf(own.dir, sizeof(own.dir), "%s", reader->rig->dir);
    while (!atomic_load(reader->stop) && !reader->wrong[0]) {
        uint64_t cut = in_head_applied(own.head);
        char *text;

        own.reads = reader->number * 1000000 + (int)atomic_load(&reader->reads);
        if (cut == 0)
            continue;
        text = rig_read(&own, "t", reader->generation, cut);
        check_answer(reader, text, cut);
        free(text);
        atomic_store(&reader->failed, reader->wrong[0] != 0);
        atomic_fetch_add(&reader->reads, 1);
    }
}

static void write_record(struct rig *rig)
{
    static struct qf_label labels[SERIES][2];
    static char texts[SERIES][8];
    struct in_record_series series[SERIES] = { 0 };
    struct in_sample samples[SERIES];
    uint64_t index = rig->index + 1;
    size_t count = index < SERIES ? index : SERIES;

    for (size_t i = 0; i < count; i++) {
        labels[i][0] = (struct qf_label){ QF_STR("__name__"), QF_STR("m") };
        labels[i][1] = (struct qf_label){ QF_STR("s"), { texts[i], 0 } };
        labels[i][1].value.len = (size_t)snprintf(texts[i], sizeof(texts[i]), "%zu", i);
        samples[i] = (struct in_sample){ .ts = (int64_t)index, .value = (double)index };
        series[i] = (struct in_record_series){ .number = (uint32_t)i,
                                               .fresh = i + 1 == index,
                                               .labels = { labels[i], 2 },
                                               .samples = &samples[i],
                                               .sample_count = 1 };
    }
    CHECK_EQ(rig_samples(rig, "t", series, count), IN_APPLIED);
}

/* Each often enough, or one has seen something wrong. */
static bool have_read(struct reader *readers)
{
    for (int i = 0; i < READERS; i++)
        if (atomic_load(&readers[i].reads) < READS && !atomic_load(&readers[i].failed))
            return false;
    return true;
}

TEST(readers_see_whole_records_up_to_their_cut)
{
    struct reader readers[READERS] = { 0 };
    struct qf_thread *threads[READERS];
    atomic_bool stop = false;
    struct rig rig;

    rig_begin(&rig, 1);
    write_record(&rig);
    for (int i = 0; i < READERS; i++) {
        readers[i] = (struct reader){
            .rig = &rig, .number = i, .stop = &stop, .generation = rig_generation(&rig, "t")
        };
        threads[i] = qf_thread_start("reader", read_on, &readers[i]);
    }
    for (int i = 0; i < RECORDS || !have_read(readers); i++) {
        write_record(&rig);
        (void)usleep(100);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < READERS; i++)
        (void)qf_thread_join(threads[i]);
    for (int i = 0; i < READERS; i++)
        CHECK_STR(readers[i].wrong, "");
    rig_end(&rig);
}
