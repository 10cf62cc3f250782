"""Tool names of all vendors -> what a call does, in our words. Pure.

Rule: a name says what its tool does only when it is in this table; a tool of an extension (`mcp__server__tool`) only
when its own name says so plainly. Everything else is `other`.
"""

from __future__ import annotations

import re

NAMES = {
    "shell": """
        bash shell exec exec_command local_shell local_shell_call shell_call container.exec shell_command unified_exec
        write_stdin run_in_terminal run_terminal_cmd run_terminal_command get_terminal_output read_terminal
        terminal_last_command send_to_terminal execute_command run_commands run_command command_status
        send_command_input read_command_output run_shell_command execute_bash cmd_run execute_shell terminal run
        read_bash write_bash stop_bash list_bash powershell read_powershell write_powershell stop_powershell
        bash_output kill_shell kill_bash bash_execution
        """,
    "read": """
        read notebook_read read_file read_files read_many_files read_lines view view_file view_files view_code_item
        view_image open open_file goto scroll_up scroll_down cat show_file get_file_contents read_text_file
        read_multiple_files read_media_file fs_read list_code_definition_names read_mcp_resource_file
        """,
    "write": """
        write write_file write_to_file create create_file create_new_file save_file new_file fs_write
        """,
    "edit": """
        edit multi_edit edit_file insert insert_edit_into_file replace_string_in_file multi_replace_string_in_file
        replace replace_in_file replace_file_content multi_replace_file_content search_and_replace search_replace
        str_replace insert_content insert_content_at_line undo_edit delete_file edit_files smart_edit
        str_replace_editor str_replace_based_edit_tool file_editor text_editor editor edit_code
        """,
    "patch": "apply_patch apply_diff patch apply_patch_call applypatch git_apply apply_edits",
    "search": """
        grep glob ls rg list list_dir list_directory list_files search_files search_file find_file search_dir
        find_filedir find_files file_search grep_search grep_files search_file_content codebase_search semantic_search
        find_by_name find_references find_usages list_code_usages test_search search_code code_search tool_search
        tool_search_call codesearch lsp find tree analyze search_files_content ripgrep glob_file_search
        list_symbols get_symbols_overview find_symbol
        """,
    "web": """
        web_fetch web_search web_search_call google_web_search websearch_exa fetch_webpage fetch fetch_url
        web.run web_scrape read_url_content view_content_chunk open_url browse browse_interactive browser
        browser_action browser_preview open_browser open_simple_browser search_web web exa_search tavily_search
        url_fetch http_get visit_webpage google_search
        """,
    "todo": """
        todo_write todo_read todo write_todos update_plan todo_list manage_todo_list update_todo_list focus_chain
        task_create task_update task_list task_get task_tracker todo__todo_write todo__todo_read update_todo
        """,
    "plan": "exit_plan_mode enter_plan_mode plan_mode_respond plan_exit plan_enter create_plan make_plan",
    "agent": """
        task agent spawn_agent send_input wait_agent resume_agent close_agent subagent subagent_codex delegate
        delegate_task delegate_to_agent delegation new_task run_subagent use_subagents codebase_investigator
        dynamic_task__create_task spawn_agents_on_csv launch_agent sub_agent handoff workflow call_agent read_agent
        """,
    "notebook": """
        notebook_edit edit_notebook edit_notebook_file run_notebook_cell create_new_jupyter_notebook
        execute_ipython_cell run_ipython jupyter python_notebook
        """,
    "other": """
        ask_user_question ask_user ask_followup_question question request_user_input attempt_completion finish submit
        think exit job_output job_kill task_output task_stop recall message system skill slash_command
        use_mcp_tool access_mcp_resource act_mode_respond run_code code_interpreter
        cordis_define cordis_inspect cordis_inspect_self cordis_mount cordis_run cordis_stop cordis_undefine
        cordis_unmount python save_memory memory switch_mode update_topic image_generation view_diff
        """,
}  # fmt: skip
"""Action -> the names of its tools. What a name of `other` does, none of our actions says."""

_PLAIN = """
    bash shell exec_command run_command execute_command run_shell_command run_terminal_command
    read_file read_text_file read_multiple_files write_file create_file edit_file apply_patch
    list_directory list_dir search_files web_search fetch_url notebook_edit text_editor file_editor
    str_replace_editor todo_write
"""
"""The names that say what a tool does whoever offers it."""

EDITORS = frozenset(("strreplaceeditor", "strreplacebasededittool", "fileeditor", "texteditor", "editor"))  # fmt: skip
"""Tools whose first argument says whether they read, write or edit."""
_NOISE = re.compile(r"[^a-z0-9]")


def plainly(name: str) -> str:
    """A tool's name without case and punctuation: `TodoWrite`, `todo_write` and `todowrite` are one."""
    return _NOISE.sub("", name.lower())


ACTIONS = {plainly(each): action for action, names in NAMES.items() for each in names.split()}
"""Name, as `plainly` gives it -> action."""
_SURE = frozenset(map(plainly, _PLAIN.split()))
_OWN = ("functions.", "default_api.", "default_api:", "developer__", "builtin__")
"""What vendors put before the names of their own tools."""


def known(name: str) -> tuple[str, str]:
    """(a tool's own name as `plainly` gives it, what it does as `ToolCall.action` says it)."""
    for prefix in _OWN:
        name = name.removeprefix(prefix)
    own = plainly(name[:200])
    action = ACTIONS.get(own)
    if action is None and "__" in name:
        own = plainly(name.rpartition("__")[2])
        action = ACTIONS[own] if own in _SURE else None
    return own, action or "other"
