/* plan.c - which files of a tenant should become fewer, and when the old ones may go.
 *
 * Files are sorted by the longest window that holds them whole. Each ripe window is looked at by itself: if one job can
 * take all that is in it, it does; else its shorter windows are looked at first. */
#include "segments/plan/plan.h"

#include <stdlib.h>

#include "base/pure/macros.h"
#include "base/pure/slice.h"
#include "base/pure/vec.h"

/* A file that counts, and is in a window or reaches over its end. */
struct item {
    const struct sg_plan_file *file;
    size_t index;
    int64_t
        window; /* number of the longest window; that of its first sample if it reaches over the end */
};

struct planner {
    const struct sg_plan_options *options;
    const struct sg_plan_file *files;
    size_t file_count;
    struct qf_arena *arena;
    QF_VEC(struct item) items;    /* in one window each, by window, shard and generation */
    QF_VEC(struct item) crossing; /* over the end of the longest window */
    QF_VEC(struct sg_plan_job) jobs;
    QF_VEC(const struct sg_plan_file *) barriers; /* of the window that is looked at */
    QF_VEC(const struct item *) members;          /* of the window and shard that is looked at */
    uint64_t waiting;
    bool failed;
};

static int64_t window_of(int64_t ts, int64_t length)
{
    return ts / length - (ts % length < 0);
}

static bool inside(const struct sg_plan_file *file, int64_t length)
{
    return window_of(file->min_ts, length) == window_of(file->max_ts, length);
}

static int64_t longest(const struct planner *p)
{
    return p->options->windows_ms[p->options->window_count - 1];
}

static bool ripe(const struct planner *p, int64_t window, int64_t length)
{
    return (window + 1) * length <= p->options->now_ms - p->options->settle_ms;
}

static bool share_series(const struct sg_plan_file *a, const struct sg_plan_file *b)
{
    uint32_t least = QF_MIN(a->shard_count, b->shard_count);

    if (a->source != b->source && a->apart && b->apart)
        return false;
    return (a->shard & (least - 1)) == (b->shard & (least - 1));
}

static bool share_time(const struct sg_plan_file *a, const struct sg_plan_file *b)
{
    return a->min_ts <= b->max_ts && b->min_ts <= a->max_ts;
}

/* --- a job --- */

static uint64_t memory_of(const struct sg_plan_file *file)
{
    return file->size >= SG_PLAN_MEMORY_MAX / SG_PLAN_MEMORY_FACTOR
               ? SG_PLAN_MEMORY_MAX
               : file->size * SG_PLAN_MEMORY_FACTOR;
}

static void add_job(struct planner *p, int64_t length, const struct item *const *items,
                    size_t count)
{
    const struct sg_plan_file *first = items[0]->file;
    struct sg_plan_job job = { .window_ms = length,
                               .shard = first->shard,
                               .shard_count = first->shard_count,
                               .min_ts = first->min_ts,
                               .max_ts = first->max_ts };
    size_t *inputs = QF_ARENA_ARRAY(p->arena, size_t, count);

    if (!inputs) {
        p->failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct sg_plan_file *file = items[i]->file;

        inputs[job.input_count++] = items[i]->index;
        job.generation = QF_MAX(job.generation, file->generation);
        job.bytes += file->size;
        job.min_ts = QF_MIN(job.min_ts, file->min_ts);
        job.max_ts = QF_MAX(job.max_ts, file->max_ts);
    }
    job.inputs = inputs;
    QF_VEC_PUSH(&p->jobs, job);
}

/* --- runs --- */

/* Would the job leave fewer files, or newer ones? */
static bool worth_it(const struct planner *p, const struct item *const *items, size_t count)
{
    uint64_t bytes = 0;
    bool outdated = false;

    for (size_t i = 0; i < count; i++) {
        bytes += items[i]->file->size;
        outdated |= items[i]->file->outdated;
    }
    return outdated || count > bytes / p->options->file_bytes + 1;
}

/* Does a file that cannot be taken lie between these generations, or at one of them? */
static bool barred(const struct planner *p, const struct sg_plan_file *like, uint64_t from,
                   uint64_t to)
{
    for (size_t i = 0; i < p->barriers.count; i++) {
        const struct sg_plan_file *other = p->barriers.items[i];

        if (other->generation >= from && other->generation <= to && share_series(like, other))
            return true;
    }
    return false;
}

static size_t same_generation(const struct planner *p, size_t at)
{
    size_t end = at + 1;

    while (end < p->members.count &&
           p->members.items[end]->file->generation == p->members.items[at]->file->generation)
        end++;
    return end;
}

/* The end of the longest run of members from @at on that one job may take. *ret_full: a bound of jobs
 * ended it. */
static size_t run_from(const struct planner *p, size_t at, bool *ret_full)
{
    const struct sg_plan_file *first = p->members.items[at]->file;
    uint64_t memory = 0;
    size_t end = at;

    *ret_full = false;
    while (end < p->members.count) {
        size_t next = same_generation(p, end);

        if (barred(p, first, first->generation, p->members.items[end]->file->generation))
            break;
        for (size_t i = end; i < next; i++)
            memory += memory_of(p->members.items[i]->file);
        if (memory > p->options->memory_bytes || next - at > p->options->inputs_max) {
            *ret_full = true;
            if (end > at)
                break;
        }
        end = next;
    }
    return end;
}

/* Files that have reached the size of an output stay as they are, unless there is a newer one beside them in which fewer
 * files would be left: a run begins behind those that lead it. */
static size_t skip_full(const struct planner *p, size_t at, size_t end)
{
    while (at < end) {
        size_t next = same_generation(p, at);
        uint64_t bytes = 0;
        bool outdated = false;

        for (size_t i = at; i < next; i++) {
            bytes += p->members.items[i]->file->size;
            outdated |= p->members.items[i]->file->outdated;
        }
        if (outdated || bytes < p->options->file_bytes)
            break;
        at = next;
    }
    return at;
}

/* Jobs of one window and shard, whose files are p->members. False: the shorter windows in it come first. */
static bool plan_members(struct planner *p, int64_t length, bool shorter)
{
    size_t jobs = p->jobs.count;

    for (size_t at = 0; at < p->members.count;) {
        size_t end, from;
        bool full;

        end = run_from(p, at, &full);
        if (full && shorter) {
            p->jobs.count = jobs;
            return false;
        }
        if (end == at) { /* a file of this very generation cannot be taken */
            at = same_generation(p, at);
            continue;
        }
        from = skip_full(p, at, end);
        if (from < end && worth_it(p, p->members.items + from, end - from))
            add_job(p, length, p->members.items + from, end - from);
        at = end;
    }
    return true;
}

/* --- windows --- */

static int by_place(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

#define ORDER(field)                                                                               \
    if (x->field != y->field)                                                                      \
    return x->field < y->field ? -1 : 1
    ORDER(window);
    ORDER(file->shard_count);
    ORDER(file->shard);
    ORDER(file->source);
    ORDER(file->generation);
    ORDER(file->min_ts);
    ORDER(index);
#undef ORDER
    return 0;
}

/* Files that share a moment with the window [from, to) and that its jobs for files cut like @like cannot take. */
static void find_barriers(struct planner *p, const struct item *items, size_t count,
                          const struct sg_plan_file *like, const struct sg_plan_file *span,
                          int64_t length)
{
    p->barriers.count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct sg_plan_file *file = items[i].file;

        if (share_time(file, span) && (file->damaged || file->shard_count != like->shard_count ||
                                       file->source != like->source || !inside(file, length)))
            QF_VEC_PUSH(&p->barriers, file);
    }
    for (size_t i = 0; i < p->crossing.count; i++)
        if (share_time(p->crossing.items[i].file, span))
            QF_VEC_PUSH(&p->barriers, p->crossing.items[i].file);
}

/* What is looked at: the files of a shard, first to end, among all of a longest window. */
struct view {
    const struct item *all;
    size_t count, first, end;
};

static void find_members(struct planner *p, const struct view *view,
                         const struct sg_plan_file *span, int64_t length)
{
    p->members.count = 0;
    for (size_t i = view->first; i < view->end; i++) {
        const struct sg_plan_file *file = view->all[i].file;

        if (share_time(file, span) && inside(file, length) && !file->damaged &&
            file->generation < p->options->below)
            QF_VEC_PUSH(&p->members, &view->all[i]);
    }
    if (p->members.count)
        find_barriers(p, view->all, view->count, view->all[view->first].file, span, length);
}

static void plan_window(struct planner *p, const struct view *view, size_t level, int64_t number)
{
    int64_t length = p->options->windows_ms[level];
    int64_t shorter = level > 0 ? p->options->windows_ms[level - 1] : length;
    struct sg_plan_file span = { .min_ts = number * length, .max_ts = (number + 1) * length - 1 };
    bool is_ripe = ripe(p, number, length);
    size_t jobs = p->jobs.count;

    if (is_ripe) {
        find_members(p, view, &span, length);
        if (plan_members(p, length, level > 0))
            return;
    }
    for (int64_t i = 0; level > 0 && i < length / shorter; i++)
        plan_window(p, view, level - 1, number * (length / shorter) + i);
    if (!is_ripe || p->jobs.count > jobs)
        return;
    /* Too much for one job, and nothing to do in the shorter windows: in several. */
    find_members(p, view, &span, length);
    (void)plan_members(p, length, false);
}

static size_t same_window(const struct planner *p, size_t at)
{
    size_t end = at + 1;

    while (end < p->items.count && p->items.items[end].window == p->items.items[at].window)
        end++;
    return end;
}

static bool is_alike(const struct sg_plan_file *a, const struct sg_plan_file *b)
{
    return a->shard == b->shard && a->shard_count == b->shard_count && a->source == b->source;
}

static void plan_all_windows(struct planner *p)
{
    for (size_t at = 0, end; at < p->items.count; at = end) {
        const struct item *all = p->items.items + at;
        size_t next;

        end = same_window(p, at);
        for (size_t i = 0; i < end - at; i = next) {
            next = i + 1;
            while (next < end - at && is_alike(all[next].file, all[i].file))
                next++;
            plan_window(p, &(struct view){ all, end - at, i, next }, p->options->window_count - 1,
                        all[i].window);
        }
    }
}

/* --- files that reach over the end of the longest window --- */

/* Another file of the same generation shares series and time with it. */
static bool has_twin(const struct planner *p, const struct item *item)
{
    for (size_t i = 0; i < p->file_count; i++) {
        const struct sg_plan_file *other = &p->files[i];

        if (i != item->index && other->generation == item->file->generation &&
            other->replaced_by == SG_PLAN_NONE && share_time(other, item->file) &&
            share_series(other, item->file))
            return true;
    }
    return false;
}

static void plan_crossing(struct planner *p)
{
    for (size_t i = 0; i < p->crossing.count && !p->options->whole; i++) {
        const struct item *item = &p->crossing.items[i];
        int64_t last = window_of(item->file->max_ts, longest(p));

        if (!ripe(p, last, longest(p)) || item->file->damaged ||
            last - item->window >= SG_PLAN_CUTS_MAX)
            continue;
        if (item->file->generation < p->options->below && !has_twin(p, item))
            add_job(p, longest(p), &item, 1);
    }
}

/* --- all of it --- */

/* What inputs replaced before and is still there: whoever replaces the inputs replaces that too. */
static void add_dead(struct planner *p, struct sg_plan_job *jobs, size_t job_count)
{
    size_t *job_of = QF_ARENA_ARRAY(p->arena, size_t, p->file_count + 1);
    size_t *dead = QF_ARENA_ARRAY(p->arena, size_t, p->file_count + 1);

    p->failed |= !job_of || !dead;
    for (size_t j = 0; !p->failed && j < job_count; j++)
        for (size_t i = 0; i < jobs[j].input_count; i++)
            job_of[jobs[j].inputs[i]] = j + 1;
    for (size_t j = 0; !p->failed && j < job_count; j++)
        jobs[j].dead = dead;
    for (size_t i = 0; !p->failed && i < p->file_count; i++)
        if (p->files[i].replaced_by != SG_PLAN_NONE && job_of[p->files[i].replaced_by])
            jobs[job_of[p->files[i].replaced_by] - 1].dead_count++;
    for (size_t j = 1; !p->failed && j < job_count; j++)
        jobs[j].dead = jobs[j - 1].dead + jobs[j - 1].dead_count;
    for (size_t j = 0; !p->failed && j < job_count; j++)
        jobs[j].dead_count = 0;
    for (size_t i = 0; !p->failed && i < p->file_count; i++)
        if (p->files[i].replaced_by != SG_PLAN_NONE && job_of[p->files[i].replaced_by]) {
            struct sg_plan_job *job = &jobs[job_of[p->files[i].replaced_by] - 1];

            dead[(size_t)(job->dead - dead) + job->dead_count++] = i;
        }
}

static bool valid(const struct sg_plan_options *o)
{
    bool good = o->window_count >= 1 && o->window_count <= SG_PLAN_WINDOWS_MAX &&
                o->file_bytes > 0 && o->inputs_max >= 2;

    for (size_t i = 0; good && i < o->window_count; i++)
        good = o->windows_ms[i] > 0 && (i == 0 || (o->windows_ms[i] > o->windows_ms[i - 1] &&
                                                   o->windows_ms[i] % o->windows_ms[i - 1] == 0));
    return good;
}

static void sort_files(struct planner *p)
{
    int64_t shortest = p->options->windows_ms[0];

    for (size_t i = 0; i < p->file_count; i++) {
        struct item item = { .file = &p->files[i],
                             .index = i,
                             .window = window_of(p->files[i].min_ts, longest(p)) };

        if (p->files[i].replaced_by != SG_PLAN_NONE)
            continue;
        p->waiting += p->files[i].generation >= p->options->below &&
                      ripe(p, window_of(p->files[i].max_ts, shortest), shortest);
        if (inside(&p->files[i], longest(p)))
            QF_VEC_PUSH(&p->items, item);
        else
            QF_VEC_PUSH(&p->crossing, item);
    }
    if (p->items.count)
        qsort(p->items.items, p->items.count, sizeof(p->items.items[0]), by_place);
    if (p->crossing.count)
        qsort(p->crossing.items, p->crossing.count, sizeof(p->crossing.items[0]), by_place);
}

static int by_time(const void *a, const void *b)
{
    const struct sg_plan_job *x = a, *y = b;

    if (x->min_ts != y->min_ts)
        return x->min_ts < y->min_ts ? -1 : 1;
    if (x->shard_count != y->shard_count)
        return x->shard_count < y->shard_count ? -1 : 1;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    if (x->generation != y->generation)
        return x->generation < y->generation ? -1 : 1;
    return (x->inputs[0] > y->inputs[0]) - (x->inputs[0] < y->inputs[0]); /* of several sources */
}

static qf_rc hand_out(struct planner *p, struct sg_plan *ret_plan, struct qf_err *err)
{
    struct sg_plan_job *jobs = QF_ARENA_ARRAY(p->arena, struct sg_plan_job, p->jobs.count + 1);

    if (p->jobs.count)
        qsort(p->jobs.items, p->jobs.count, sizeof(p->jobs.items[0]), by_time);
    for (size_t i = 0; jobs && i < p->jobs.count; i++)
        jobs[i] = p->jobs.items[i];
    if (jobs)
        add_dead(p, jobs, p->jobs.count);
    if (!jobs || p->failed)
        return qf_err_set(err, QF_ELIMIT, "too many files (%zu) to plan within the memory allowed",
                          p->file_count);
    *ret_plan = (struct sg_plan){ .jobs = jobs, .job_count = p->jobs.count, .waiting = p->waiting };
    return QF_OK;
}

qf_rc sg_plan_make(const struct sg_plan_options *options, const struct sg_plan_file *files,
                   size_t count, struct qf_arena *arena, struct sg_plan *ret_plan,
                   struct qf_err *err)
{
    struct planner p = { .options = options, .files = files, .file_count = count, .arena = arena };
    qf_rc rc;

    if (!valid(options))
        return qf_err_set(err, QF_EINVAL, "windows, sizes or bounds that cannot be");
    sort_files(&p);
    plan_all_windows(&p);
    plan_crossing(&p);
    rc = hand_out(&p, ret_plan, err);
    QF_VEC_DONE(&p.items);
    QF_VEC_DONE(&p.crossing);
    QF_VEC_DONE(&p.jobs);
    QF_VEC_DONE(&p.barriers);
    QF_VEC_DONE(&p.members);
    return rc;
}

uint64_t sg_plan_below(uint64_t now_us, const uint64_t *unsealed, size_t unsealed_count,
                       const uint64_t *imports, size_t import_count)
{
    uint64_t below = now_us;

    for (size_t i = 0; i < unsealed_count; i++)
        below = QF_MIN(below, unsealed[i]);
    for (size_t i = 0; i < import_count; i++)
        below = QF_MIN(below, imports[i]);
    return below;
}

bool sg_plan_deletable(int64_t put_ms, int64_t now_ms, int64_t grace_ms)
{
    return put_ms > 0 && now_ms > 0 && now_ms - put_ms >= grace_ms;
}
