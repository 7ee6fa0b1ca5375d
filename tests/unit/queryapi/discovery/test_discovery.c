/* test_discovery.c - the list that is handed over. */
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "queryapi/discovery/discovery.h"
#include "tests/lib/test.h"

static atomic_size_t found_count;

static void note_found(void *ctx, const char *const *addresses, size_t count)
{
    (void)ctx;
    (void)addresses;
    atomic_store(&found_count, count);
}

/* Named twice is there once, and what is over the limit is left out. */
TEST(workers_count_once_and_have_a_limit)
{
    static char names[QA_ENDPOINTS_MAX + 10][32];
    static const char *workers[2 * (QA_ENDPOINTS_MAX + 10)];
    struct qa_discovery_options options = { .kind = QA_DISCOVERY_STATIC, .workers = workers };
    static const size_t sizes[] = { 3, QA_ENDPOINTS_MAX, QA_ENDPOINTS_MAX + 10 };

    options.found = note_found;
    for (size_t i = 0; i < QF_COUNT_OF(sizes); i++) {
        struct qa_discovery *discovery;

        for (size_t w = 0; w < sizes[i]; w++) {
            (void)snprintf(names[w], sizeof(names[w]), "worker-%zu:1", w);
            workers[w] = workers[sizes[i] + w] = names[w];
        }
        options.worker_count = 2 * sizes[i];
        atomic_store(&found_count, 0);
        discovery = qa_discovery_new(&options, NULL);
        CHECK(discovery != NULL);
        for (int waits = 0; waits < 500 && atomic_load(&found_count) == 0; waits++)
            (void)usleep(10000);
        (void)qa_discovery_free(discovery);
        CHECK_EQ(atomic_load(&found_count), QF_MIN(sizes[i], (size_t)QA_ENDPOINTS_MAX));
    }
}
