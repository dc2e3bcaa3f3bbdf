/*
 * The agent: one remote command, which a switchboard runs; mpirt-discover, which a switchboard answers; every other
 * program in the runtime folder's bin/, which it starts in Python; and the first process of a launcher's container.
 */
#include "agent.h"

int main(int argc, char **argv, char **environment)
{
    launch_find(argc, argv, environment);
    if (launch_is_init())
        init_run(session.words);
    if (launch_is_discover())
        discover_run();
    if (!launch_is_agent())
        launch_program(NULL);
    signals_begin();
    open_what_is_closed();
    agent_run();
}
