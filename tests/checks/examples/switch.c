/* switch.c - what tests/checks/switches must find. */
enum sign { PLUS, MINUS };

int example(enum sign sign);

int example(enum sign sign)
{
    switch ((int)sign) {
    case PLUS:
        return 1;
    default:
        return -1;
    }
}
