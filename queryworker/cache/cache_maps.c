/* cache_maps.c - copies of state maps that works read: fetched like segments, once for all that want a version. */
#include <stdio.h>
#include <xxhash.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "queryworker/cache/cache_int.h"
#include "queryworker/cache/head.h"
#include "queryworker/cache/map.h"

#define MAP_SUFFIX ".map" /* of no use to a later process: it would have to compare sums again */

static struct qw_id id_of_map(const struct qw_map_ask *ask)
{
    struct qf_str text = qw_map_ask_text(ask);
    XXH128_hash_t hash = XXH3_128bits(text.data, text.len);

    return (struct qw_id){ hash.high64, hash.low64 };
}

/* Takes @ask. */
static qf_rc start_map(struct qw_cache *cache, struct qw_segment *s, struct qw_map_ask *ask,
                       const struct pb_map *map, struct qf_err *err)
{
    struct qf_strbuf name = QF_STRBUF_INIT;
    struct qw_download *d;

    qf_strbuf_printf(&name, "state map %.*s of version %llu", QF_STR_ARG(map->name),
                     (unsigned long long)map->version);
    d = qw_cache_download_new(cache, s, qf_strbuf_cstr(&name), "");
    qf_strbuf_done(&name);
    d->heads = cache->options.heads;
    d->map = ask;
    return qw_cache_download_start(cache, d, map->bytes, err);
}

static struct qw_segment *want_map(struct qw_cache *cache, struct qf_str tenant,
                                   const struct pb_maps *maps, const struct pb_map *map,
                                   struct qf_err *err)
{
    struct qw_map_ask *ask = qw_map_ask_new(tenant, maps, map);
    struct qw_id id = id_of_map(ask);
    struct qw_segment *s = qw_cache_find(cache, id);
    char name[32 + sizeof(MAP_SUFFIX)];

    if (s && (s->present || s->download)) {
        if (s->download)
            atomic_store(&s->download->cancel, false);
        qw_map_ask_free(ask);
        return s;
    }
    (void)snprintf(name, sizeof(name), "%016llx%016llx" MAP_SUFFIX, (unsigned long long)id.high,
                   (unsigned long long)id.low);
    s = qw_cache_add(cache, id, qw_cache_join(cache->dir, name));
    if (start_map(cache, s, ask, map, err)) {
        qw_cache_drop(cache, s);
        return NULL;
    }
    return s;
}

void qw_cache_acquire_maps(struct qw_cache *cache, struct qw_hold *hold, struct qf_str tenant,
                           const struct pb_maps *maps)
{
    if (hold->rc || !maps->count)
        return;
    hold->segments =
        qf_xrealloc(hold->segments, (hold->count + maps->count) * sizeof(hold->segments[0]));
    for (size_t i = 0; i < maps->count; i++) {
        struct qw_segment *s = want_map(cache, tenant, maps, &maps->inputs[i], &hold->err);

        if (!s) {
            hold->rc = hold->err.rc;
            break;
        }
        s->pins++;
        hold->segments[hold->count++] = s;
        hold->map_count++;
        hold->missing += !s->present;
    }
    qw_cache_list(cache, hold);
}
