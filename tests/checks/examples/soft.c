/* soft.c - built without any hardening: what tests/checks/hardening must refuse. */
#include <stdio.h>

int main(void)
{
    return puts("soft") < 0;
}
