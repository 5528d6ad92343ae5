"""`manage.py database_roles`: gives the database roles of all processes their rights. Run after each migration, with
the owner's DATABASE_URL.

    python manage.py database_roles web=/secrets/web worker=/secrets/worker …

Each file has the DATABASE_URL of that process. Its user is created, or gets this password. A process whose URL has the
owner's user goes on with the owner's rights.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from desk.installation import grants
from desk.installation.grants import Login
from desk.installation.rights import ROLES


class Command(BaseCommand):
    help = "Give the database roles of all processes their rights, and their logins the passwords of their URLs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "logins", nargs="*", metavar="PROCESS=FILE", help=f"file with a DATABASE_URL; processes: {', '.join(ROLES)}"
        )
        parser.add_argument("--retire", action="append", default=[], metavar="LOGIN", help="remove a login of before")

    def handle(self, *args: Any, logins: list[str], retire: list[str], **options: Any) -> None:
        asked = [_login(text) for text in logins]
        owner = grants.owner()
        own = [login for login in asked if login.name != owner]
        if grants.missing_roles():
            if not grants.may_create_roles():
                self._go_without(own, owner)
                return
            grants.create_roles()
        grants.grant_rights()
        self.stdout.write(f"Rights given to {', '.join(ROLES.values())}.")
        for login in own:
            grants.give_login(login)
            self.stdout.write(f"{login.process} signs in as {login.name}.")
        for login in asked:
            if login.name == owner:
                self.stdout.write(f"{login.process} has all rights: its DATABASE_URL has the owner's user {owner}.")

        for name in retire:
            if name in {login.name for login in asked} or not grants.retire_login(name):
                raise CommandError(f"{name} is in use, or no login of a process. It was not removed.")
            self.stdout.write(f"{name} was removed.")

    def _go_without(self, own: list[Login], owner: str) -> None:
        """An installation with one role goes on with it."""
        missing = grants.missing_roles()
        statements = " ".join(f"CREATE ROLE {role};" for role in missing)
        text = f"The database user {owner} may not create roles, and {', '.join(missing)} do not exist."
        if own:
            raise CommandError(
                f"{text} As an administrator of PostgreSQL: ALTER ROLE {owner} CREATEROLE; or {statements}"
            )
        self.stdout.write(f"{text} Every process has all rights.")


def _login(text: str) -> Login:
    process, _, path = text.partition("=")
    if process not in ROLES or not path:
        raise CommandError(f"{text} is not PROCESS=FILE; processes: {', '.join(ROLES)}.")
    try:
        url = Path(path).read_text().strip()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from error
    login = Login.of_url(process, url)
    if not login.name or not login.password:
        raise CommandError(f"{path} is no DATABASE_URL with a user and a password.")
    return login
