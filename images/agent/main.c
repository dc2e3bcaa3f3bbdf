/*
 * The agent: one remote command, which a switchboard runs; every program in the runtime folder's bin/, which it
 * starts in Python; and the first process of a launcher's container.
 */
#include "agent.h"

int main(int argc, char **argv, char **environment)
{
    launch_find(argc, argv, environment);
    if (launch_is_init())
        init_run(session.words);
    signals_begin();
    if (!launch_is_agent())
        launch_program();
    open_what_is_closed();
    agent_run();
}
