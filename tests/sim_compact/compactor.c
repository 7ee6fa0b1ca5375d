/* compactor.c - one compactor, step by step, with the planner that ships. It may be killed between any two steps. */
#include "tests/sim_compact/world.h"

#include <stdlib.h>
#include <string.h>

enum stage {
    IDLE,
    LEASES,
    LEDGER,
    LIST,
    READ,
    WRITE,
    TRADE,
    TURN,
    LOOK,
    AGAIN,
    PUT,
    CHECK,
    DELETE
};

#define FILE_BYTES 700

static bool unsettled(const struct world *w, int64_t ended)
{
    return !ended || (!w->ring && w->now - ended <= SETTLE);
}

static void lower(struct compactor *c, uint64_t generation)
{
    c->below = generation < c->below ? generation : c->below;
}

/* Whoever still has a lease, or had one a moment ago. */
static void look_at_leases(struct world *w, struct compactor *c)
{
    for (int i = 0; w->rules.leases && i < IMPORTERS; i++)
        if (w->importers[i].lease_put && unsettled(w, w->importers[i].ended))
            lower(c, w->importers[i].generation);
}

/* BELOW in the partition's ledger. What is heard counts when it is older than listings are late. */
static void ask_ledger(struct world *w, struct compactor *c)
{
    uint64_t settled = ingest_settle(w, (uint64_t)c->now * 1000), old = 0;

    for (size_t i = 0; i < w->word_count; i++)
        if (w->now - w->words[i].put > SETTLE && w->words[i].generation > old)
            old = w->words[i].generation;
    if (w->word_count < WORDS_MAX)
        w->words[w->word_count++] = (struct word){ settled, w->now };
    lower(c, (w->rules.words && !w->ring ? old : settled) + 1);
}

/* --- planning --- */

static bool hidden(const struct world *w, const struct compactor *c, size_t index)
{
    const struct file *file = &w->files[index];

    return !w->rules.runs && (c->damaged[index] || file->min_ts / DAY != file->max_ts / DAY);
}

static void make_files(const struct world *w, const struct compactor *c, struct sg_plan_file *files,
                       size_t *names, size_t *ret_count)
{
    size_t count = 0;

    for (size_t i = 0; i < c->listing.seen_count; i++) {
        size_t index = c->listing.seen[i];
        const struct file *file = &w->files[index];

        if (hidden(w, c, index))
            continue;
        names[count] = index;
        files[count++] = (struct sg_plan_file){ .min_ts = file->min_ts,
                                                .max_ts = file->max_ts,
                                                .shard = file->shard,
                                                .shard_count = SHARDS,
                                                .generation = file->generation,
                                                .size = file->size,
                                                .damaged = c->damaged[index],
                                                .replaced_by = replaced_by(w, &c->listing, index) };
        if (w->ring) /* ranges and imports are in two partitions, and may have the same series */
            files[count - 1].source = file->generation % 1000 < 500 ? 1 : 2;
        files[count - 1].apart = files[count - 1].source == 1 || !w->rules.sources;
    }
    /* From names to places in this array. */
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; files[i].replaced_by != SG_PLAN_NONE && j < count; j++)
            if (names[j] == files[i].replaced_by) {
                files[i].replaced_by = j;
                break;
            }
    *ret_count = count;
}

static void take_job(struct compactor *c, const struct sg_plan_job *job, const size_t *names)
{
    c->input_count = c->dead_count = c->at = 0;
    c->window = job->window_ms;
    for (size_t i = 0; i < job->input_count; i++)
        c->inputs[c->input_count++] = names[job->inputs[i]];
    for (size_t i = 0; i < job->dead_count && i + job->input_count < NAMES_MAX; i++)
        c->dead[c->dead_count++] = names[job->dead[i]];
    c->stage = READ;
}

static void find_doomed(struct world *w, struct compactor *c)
{
    int64_t now = w->rules.clock ? c->now : w->now + c->clock;

    c->doomed_count = 0;
    for (size_t i = 0; i < c->listing.seen_count; i++) {
        size_t by = replaced_by(w, &c->listing, c->listing.seen[i]);

        if (by != SG_PLAN_NONE &&
            sg_plan_deletable(w->files[by].put, now, w->rules.grace ? GRACE : 0))
            c->doomed[c->doomed_count++] = c->listing.seen[i];
    }
    c->stage = c->doomed_count ? DELETE : IDLE;
}

static void plan(struct world *w, struct compactor *c)
{
    static const int64_t windows[] = { WINDOW, DAY };
    static struct sg_plan_file files[FILES_MAX];
    static size_t names[FILES_MAX];
    struct sg_plan_options options = { .windows_ms = windows,
                                       .window_count = 2,
                                       .now_ms = c->now,
                                       .settle_ms = SETTLE,
                                       .below = c->below,
                                       .file_bytes = FILE_BYTES,
                                       .memory_bytes = 1 << 20,
                                       .inputs_max = 24,
                                       .whole = w->ring };
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct sg_plan made;
    size_t count;

    make_files(w, c, files, names, &count);
    if (sg_plan_make(&options, files, count, arena, &made, NULL) != QF_OK)
        abort();
    if (made.job_count && chance(w, 0.8))
        take_job(c, &made.jobs[between(w, 0, (int64_t)made.job_count - 1)], names);
    else
        find_doomed(w, c);
    (void)qf_arena_free(arena);
}

/* --- the job --- */

static uint32_t winner(const struct world *w, const struct compactor *c, int series, int at)
{
    const struct file *best = NULL;

    for (size_t i = 0; i < c->input_count; i++) {
        const struct file *file = &w->files[c->inputs[i]];

        if (file->values[series][at] && (!best || newer(file, best)))
            best = file;
    }
    return best ? best->values[series][at] : 0;
}

static uint64_t greatest(const struct world *w, const struct compactor *c)
{
    uint64_t generation = 0;

    for (size_t i = 0; i < c->input_count; i++)
        if (w->files[c->inputs[i]].generation > generation)
            generation = w->files[c->inputs[i]].generation;
    return generation;
}

/* Series by series; a file that has reached its size is followed by another. */
static void write_window(struct world *w, struct compactor *c, int64_t window)
{
    size_t index = SG_PLAN_NONE;

    for (int s = (int)w->files[c->inputs[0]].shard; s < SERIES; s += SHARDS) {
        for (int t = 0; t < TIMES; t++) {
            uint32_t value = (int64_t)t * GRAIN / c->window == window ? winner(w, c, s, t) : 0;

            if (!value)
                continue;
            if (index == SG_PLAN_NONE) {
                index = file_new(w, w->files[c->inputs[0]].shard, greatest(w, c));
                c->outputs[c->output_count++] = index;
            }
            file_set(&w->files[index], s, t, value);
            file_seal(&w->files[index]);
        }
        if (index != SG_PLAN_NONE && w->files[index].size >= FILE_BYTES)
            index = SG_PLAN_NONE;
    }
}

static bool is_output(const struct world *w, const struct compactor *c, size_t input)
{
    const struct file *file = &w->files[input];

    for (size_t i = 0; i < c->output_count; i++) {
        const struct file *output = &w->files[c->outputs[i]];

        if (output->id == file->id && output->generation == file->generation &&
            output->min_ts == file->min_ts && output->max_ts == file->max_ts)
            return true;
    }
    return false;
}

static void write_outputs(struct world *w, struct compactor *c)
{
    struct file *last;

    c->output_count = 0;
    for (int64_t window = 0; window <= STEPS / c->window; window++)
        write_window(w, c, window);
    last = &w->files[c->outputs[c->output_count - 1]];
    c->at = 0;
    c->stage = w->ring ? TRADE : TURN;
    if (w->ring)
        return;
    for (size_t i = 0; i + 1 < c->output_count; i++)
        last->beside[last->beside_count++] = c->outputs[i];
    for (size_t i = 0; i < c->input_count; i++)
        if (!is_output(w, c, c->inputs[i]))
            last->replaces[last->replaces_count++] = c->inputs[i];
    for (size_t i = 0; i < c->dead_count; i++)
        if (!is_output(w, c, c->dead[i]))
            last->replaces[last->replaces_count++] = c->dead[i];
}

static bool is_there(const struct world *w, size_t file);
static size_t input_of(const struct world *w, const struct compactor *c, size_t output);

/* One entry of a log. */
static void trade(struct world *w, struct compactor *c)
{
    c->stage = IDLE;
    for (size_t i = 0; w->rules.trade && i < c->input_count; i++)
        if (!is_there(w, c->inputs[i]))
            return;
    say(w, "c%d trades %d inputs for %d outputs", (int)(c - w->compactors), (int)c->input_count,
        (int)c->output_count);
    for (size_t i = 0; i < c->output_count; i++)
        if (input_of(w, c, c->outputs[i]) == SG_PLAN_NONE)
            store_put(w, c->outputs[i]);
    for (size_t i = 0; i < c->input_count; i++)
        if (!is_output(w, c, c->inputs[i])) {
            w->deleted += store_has(w, c->inputs[i]);
            store_delete(w, c->inputs[i]);
        }
    w->jobs++;
}

static void read_input(struct world *w, struct compactor *c)
{
    size_t index = c->inputs[c->at];

    if (!store_has(w, index)) {
        c->stage = IDLE; /* vanished: plan again */
    } else if (w->files[index].damaged) {
        c->damaged[index] = true;
        c->stage = IDLE;
    } else if (++c->at == c->input_count) {
        c->stage = WRITE;
    }
}

/* --- its turn, before or after a removal --- */

static void begin_turn(struct world *w, struct compactor *c)
{
    c->turn = true;
    c->turn_began = c->turn_renewed = w->now;
    c->turn_min = INT64_MAX;
    c->turn_max = INT64_MIN;
    for (size_t i = 0; i < c->input_count; i++) {
        const struct file *file = &w->files[c->inputs[i]];

        c->turn_min = file->min_ts < c->turn_min ? file->min_ts : c->turn_min;
        c->turn_max = file->max_ts > c->turn_max ? file->max_ts : c->turn_max;
    }
    c->stage = LOOK;
}

static void end_turn(struct compactor *c)
{
    c->turn = false;
    c->stage = IDLE;
}

/* What was removed, or replaced by somebody else, since it was read. */
static void look_again(struct world *w, struct compactor *c)
{
    c->stage = PUT;
    for (size_t i = 0; w->rules.again && i < c->input_count; i++)
        if (!store_has(w, c->inputs[i]))
            end_turn(c);
}

/* Is a file of its name? Others may have put it over. */
static bool is_there(const struct world *w, size_t file)
{
    for (size_t i = 0; i < w->file_count; i++)
        if (store_has(w, i) && same_name(&w->files[i], &w->files[file]))
            return true;
    return false;
}

static size_t input_of(const struct world *w, const struct compactor *c, size_t output)
{
    for (size_t i = 0; i < c->input_count; i++)
        if (same_name(&w->files[c->inputs[i]], &w->files[output]))
            return c->inputs[i];
    return SG_PLAN_NONE;
}

/* Whoever wakes up later than its lease lasts puts nothing, unless its clock was stopped as well. What is to be put over an
 * input is not put if that is gone. */
static void put_output(struct world *w, struct compactor *c)
{
    size_t input = input_of(w, c, c->outputs[c->at]);

    if ((w->now - c->turn_renewed > TURN_LIFE && chance(w, 0.5)) ||
        (input != SG_PLAN_NONE && !is_there(w, input))) {
        c->stage = CHECK;
        return;
    }
    say(w, "c%d puts output %d of %d inputs", (int)(c - w->compactors), (int)c->outputs[c->at],
        (int)c->input_count);
    if (c->turn)
        c->turn_renewed = w->now;
    store_put(w, c->outputs[c->at++]);
    if (c->at == c->output_count)
        c->stage = CHECK;
}

static void take_back(struct world *w, struct compactor *c)
{
    for (size_t i = 0; i < c->at; i++)
        if (input_of(w, c, c->outputs[i]) == SG_PLAN_NONE) {
            say(w, "c%d takes %d back", (int)(c - w->compactors), (int)c->outputs[i]);
            store_delete(w, c->outputs[i]);
        }
}

/* What was put so long ago may be all that is left of the inputs: it stays, and is there again. */
static void own_up(struct world *w, const struct compactor *c)
{
    for (size_t i = 0; i < c->at; i++)
        for (int s = 0; s < SERIES; s++)
            for (int t = 0; t < TIMES; t++)
                w->removed[w->files[c->outputs[i]].values[s][t]] = 0;
}

/* Somebody thought that it was dead, and removes its inputs? */
static void check_turn(struct world *w, struct compactor *c)
{
    if (!c->turn && w->rules.late && w->now - c->turn_began >= TAKE_BACK_MAX)
        own_up(w, c);
    else if (!c->turn && w->rules.back)
        take_back(w, c);
    w->jobs += c->turn && c->at == c->output_count;
    end_turn(c);
}

static void delete_one(struct world *w, struct compactor *c)
{
    size_t index = c->doomed[--c->doomed_count];

    say(w, "c%d deletes %d", (int)(c - w->compactors), (int)index);
    w->deleted += store_has(w, index);
    store_delete(w, index);
    if (!c->doomed_count)
        c->stage = IDLE;
}

bool compactor_is_unaware(const struct compactor *c)
{
    return (c->stage == PUT || c->stage == CHECK) && !c->turn;
}

void compactor_step(struct world *w, struct compactor *c)
{
    if (w->now < c->asleep_until)
        return;
    if (c->stage >= TURN && c->stage <= CHECK && chance(w, 0.05)) /* its machine is stopped */
        c->asleep_until = w->now + between(w, 0, SLEEP_MAX);
    /* Killed, or the store failed. Not while it is thought dead and about to find out: its turn is worth no more than that. */
    if (c->stage != IDLE && (c->stage < PUT || c->turn) && chance(w, 0.004)) {
        memset(c->damaged, 0, sizeof(c->damaged));
        c->stage = IDLE; /* its lease stays until another job begins */
        return;
    }
    switch ((enum stage)c->stage) {
    case IDLE:
        if (!chance(w, 0.2))
            return;
        c->now = w->now;
        c->below =
            w->rules.below ? (uint64_t)(w->now > SETTLE ? w->now - SETTLE : 0) * 1000 : UINT64_MAX;
        if (w->rules.below && c->below > w->below_mark + 1)
            w->below_mark = c->below - 1;
        c->stage = w->rules.below ? LEASES : LIST;
        break;
    case LEASES:
        look_at_leases(w, c);
        c->stage = LEDGER;
        break;
    case LEDGER:
        if (w->rules.ranges)
            ask_ledger(w, c);
        c->stage = LIST;
        break;
    case LIST:
        if (!c->listing.active)
            listing_start(w, &c->listing);
        if (listing_step(w, &c->listing))
            plan(w, c);
        break;
    case READ:
        read_input(w, c);
        break;
    case WRITE:
        write_outputs(w, c);
        break;
    case TRADE:
        if (chance(w, 0.1)) /* putting takes a while */
            trade(w, c);
        break;
    case TURN:
        begin_turn(w, c);
        break;
    case LOOK:
        if (w->rules.turns && removal_under_way(w, c))
            end_turn(c);
        else
            c->stage = AGAIN;
        break;
    case AGAIN:
        look_again(w, c);
        break;
    case PUT:
        put_output(w, c);
        break;
    case CHECK:
        check_turn(w, c);
        break;
    case DELETE:
        delete_one(w, c);
        break;
    }
}
