/* test_door.c - tenants that were told to wait. */
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "ingest/accept/door.h"
#include "tests/lib/test.h"

TEST(who_was_told_to_wait_is_turned_away_until_then)
{
    struct in_door *door = qf_xcalloc(1, sizeof(*door));

    CHECK_EQ(in_door_wait(door, QF_STR("a"), 1000), 0);
    in_door_shut(door, QF_STR("a"), 1000, 300);
    CHECK_EQ(in_door_wait(door, QF_STR("a"), 1000), 300);
    CHECK_EQ(in_door_wait(door, QF_STR("a"), 1299), 1);
    CHECK_EQ(in_door_wait(door, QF_STR("a"), 1300), 0);
    CHECK_EQ(in_door_wait(door, QF_STR("b"), 1000), 0);
    in_door_shut(door, QF_STR("a"), 2000, 3600000); /* looked at again after a second */
    CHECK_EQ(in_door_wait(door, QF_STR("a"), 2000), IN_DOOR_WAIT_MS_MAX);
    CHECK_EQ(in_door_wait(door, QF_STR("a"), 2000 + IN_DOOR_WAIT_MS_MAX), 0);
    free(door);
}

/* There are more tenants than places: one may be forgotten, none waits for another. */
TEST(nobody_waits_for_what_another_tenant_was_told)
{
    struct in_door *door = qf_xcalloc(1, sizeof(*door));
    char name[16];

    for (int i = 0; i < 4 * IN_DOOR_PLACES; i++) {
        (void)snprintf(name, sizeof(name), "told-%d", i);
        in_door_shut(door, qf_str_from(name), 1000, 500);
    }
    for (int i = 0; i < 4 * IN_DOOR_PLACES; i++) {
        (void)snprintf(name, sizeof(name), "free-%d", i);
        CHECK_EQ(in_door_wait(door, qf_str_from(name), 1000), 0);
    }
    free(door);
}
