/* test_nearest.c - which flag somebody may have meant. */
#include "cli/nearest.h"

#include <string.h>

#include "tests/lib/test.h"

static const char *const words[] = { "store", "http-listen", "workers", "worker-id",
                                     "query-timeout" };

static const char *word_at(const void *ctx, size_t i)
{
    (void)ctx;
    return words[i];
}

static const char *nearest(const char *typed)
{
    const char *found =
        cli_nearest(qf_str_from(typed), word_at, NULL, sizeof(words) / sizeof(words[0]));

    return found ? found : "none";
}

TEST(a_few_wrong_letters_still_mean_the_word)
{
    CHECK_STR(nearest("stroe"), "store");
    CHECK_STR(nearest("stor"), "store");
    CHECK_STR(nearest("http_listen"), "http-listen");
    CHECK_STR(nearest("worker"), "workers");
    CHECK_STR(nearest("query-timout"), "query-timeout");
}

TEST(the_beginning_of_a_word_means_it)
{
    CHECK_STR(nearest("query"), "query-timeout");
    CHECK_STR(nearest("http"), "http-listen");
}

TEST(what_is_far_from_all_means_none)
{
    CHECK_STR(nearest("frobnicate"), "none");
    CHECK_STR(nearest(""), "none");
    CHECK_STR(nearest("a-word-that-is-longer-than-any-flag-that-anybody-would-type"), "none");
}
