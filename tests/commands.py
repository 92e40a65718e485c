"""Commands of `tilepath` in the process of a test."""

from click.testing import CliRunner

from tilepath.cli import tilepath


def invoke(*arguments, **options):
    """Run a command; returns the result of click."""
    return CliRunner().invoke(tilepath, [str(each) for each in arguments], **options)


def run_command(*arguments):
    """Run a command, which succeeds; returns the result of click."""
    done = invoke(*arguments)
    assert done.exit_code == 0, (arguments, done.output, done.exception)
    return done


def printed(*arguments, fault=None):
    """Run a command, and return what it prints; with `fault`, it fails and says this."""
    done = invoke(*arguments)
    assert (done.exception is None) == (fault is None), (done.output, done.exception)
    assert fault is None or fault in str(done.exception) + done.stderr
    return done.stdout
