/* replay.c - check what real clients were told: lines on stdin, in the order in which things happened.
 *
 *     offer VALUE                        about to be sent; values are 1, 2, 3, ...
 *     acked VALUE OFFSET                 the client heard so
 *     refused VALUE                      the client heard that it was not done
 *     begin READ                         about to be sent; READ is any number
 *     read READ KEPT FROM LAST [OFFSET:VALUE ...]    all records from FROM to LAST; KEPT is the first
 *                                        offset that was left
 *     consumed OFFSET VALUE              handed out to one client
 *     offset SHOWN ACKED                 a consumer's offset as read, and its last acknowledged one
 *
 * Prints what is wrong and where, exit code 1; else how much was checked. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/vec.h"
#include "tests/sim_queue/history.h"

struct open_read {
    uint64_t id;
    struct history_begin begin;
};

struct replay {
    struct history *history;
    QF_VEC(struct open_read) open;
    QF_VEC(struct history_record) records;
    uint64_t offers, acked, refused, reads, consumed, lines;
};

static const char *take_begin(struct replay *replay, uint64_t id, struct history_begin *ret_begin)
{
    for (size_t i = 0; i < replay->open.count; i++)
        if (replay->open.items[i].id == id) {
            *ret_begin = replay->open.items[i].begin;
            replay->open.items[i] = replay->open.items[--replay->open.count];
            return NULL;
        }
    return "a read that did not begin";
}

static const char *on_read(struct replay *replay, const char *text)
{
    uint64_t id, kept, from, last, offset, value;
    struct history_begin begin;
    const char *wrong;
    int used = 0;

    if (sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 "%n", &id, &kept, &from, &last,
               &used) != 4)
        return "not a line of a history";
    replay->records.count = 0;
    for (text += used; sscanf(text, " %" SCNu64 ":%" SCNu64 "%n", &offset, &value, &used) == 2;
         text += used)
        QF_VEC_PUSH(&replay->records, (struct history_record){ offset, value });
    wrong = take_begin(replay, id, &begin);
    replay->reads++;
    return wrong ? wrong
                 : history_read_from(replay->history, &begin, kept, from, last,
                                     replay->records.items, replay->records.count);
}

static const char *on_consumed(struct replay *replay, uint64_t offset, uint64_t value)
{
    struct history_record record = { offset, value };
    struct history_begin anything = { 0 };
    const char *wrong =
        history_read_from(replay->history, &anything, 0, offset, offset, &record, 1);

    replay->consumed++;
    return wrong ? wrong : history_consumed(replay->history, offset, offset);
}

static const char *on_line(struct replay *replay, const char *line)
{
    char word[16] = "";
    uint64_t a = 0, b = 0;
    int used = 0, count;

    if (sscanf(line, "%15s%n", word, &used) != 1)
        return "not a line of a history";
    count = sscanf(line + used, "%" SCNu64 " %" SCNu64, &a, &b);
    if (strcmp(word, "offer") == 0 && count == 1) {
        replay->offers++;
        return history_offer(replay->history) == a ? NULL : "values do not follow each other";
    }
    if (strcmp(word, "acked") == 0 && count == 2) {
        replay->acked++;
        return history_acked(replay->history, a, b);
    }
    if (strcmp(word, "refused") == 0 && count == 1 && a >= 1 && a <= replay->offers) {
        replay->refused++;
        return history_refused(replay->history, a);
    }
    if (strcmp(word, "begin") == 0 && count == 1) {
        QF_VEC_PUSH(&replay->open, (struct open_read){ a, history_begin(replay->history) });
        return NULL;
    }
    if (strcmp(word, "read") == 0)
        return on_read(replay, line + used);
    if (strcmp(word, "consumed") == 0 && count == 2)
        return on_consumed(replay, a, b);
    if (strcmp(word, "offset") == 0 && count == 2)
        return history_offset(a, b);
    return "not a line of a history";
}

int main(void)
{
    struct replay replay = { .history = history_new() };
    const char *wrong = NULL;
    char *line = NULL;
    size_t capacity = 0;

    while (!wrong && getline(&line, &capacity, stdin) > 0) {
        replay.lines++;
        wrong = on_line(&replay, line);
    }
    if (wrong)
        printf("WRONG line %" PRIu64 ": %s: %.200s", replay.lines, wrong, line);
    else
        printf("right: %" PRIu64 " offers, %" PRIu64 " acknowledged, %" PRIu64 " refused, %" PRIu64
               " reads, %" PRIu64 " consumed\n",
               replay.offers, replay.acked, replay.refused, replay.reads, replay.consumed);
    free(line);
    QF_VEC_DONE(&replay.open);
    QF_VEC_DONE(&replay.records);
    replay.history = history_free(replay.history);
    return wrong ? 1 : 0;
}
