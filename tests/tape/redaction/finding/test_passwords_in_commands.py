"""Passwords in command lines: each command by its own grammar."""

import json

import pytest

from playhead.tape.redaction.finding.finder import finder
from playhead.tape.redaction.finding.searched_text import Context

_P = "tr4vel-Gnome9"
_AWS = "u8Kq2/Zr5+Tn1Vw7Xb4Yc9Ld3Mf6Gh0Js2Pa8Qe"
COMMANDS: dict[str, str | None] = {
    # MySQL and MariaDB: joined alone; behind a blank is the database, and the password is asked for
    f"mysql -u root -p{_P} shop": _P,
    f"mysql -uroot -p'{_P}' shop": _P,
    f"mysqldump --password={_P} shop_eu1": _P,
    f"mariadb -p{_P}": _P,
    f"mysqladmin -h db -p{_P} ping": _P,
    "mysql -u root -p customers_2024 < dump.sql": None,
    "mysqldump -u root -p shop_eu1 > x.sql": None,
    "mysqldump -u root --password shop_eu1 > x.sql": None,
    "mariadb-dump -p shop_eu1": None,
    "mysqlimport -p shop_eu1 table.txt": None,
    "mysql -P 3306 -D shop_eu1": None,
    # MongoDB: with a blank, joined, or with a sign
    f"mongosh --host m -u bob -p {_P}": _P,
    f"mongodump -u bob -p={_P} --out x": _P,
    f"mongorestore --password {_P} dump/": _P,
    f"mongo --password={_P}": _P,
    "mongosh -u bob -p --authenticationDatabase admin9": None,
    "docker run -d --name mongo -p 27017:27017 mongo:7": None,
    "docker run -d --name mongo -p 127.0.0.1:27017:27017 mongo:7": None,
    # a command that runs another
    f"sshpass -p {_P} ssh -p 2222 bob@host": _P,
    f"sshpass -p{_P} scp a bob@host:": _P,
    f"sshpass -v -P assphrase -p {_P} ssh bob@host": _P,
    "sshpass -e ssh -p 22022 bob@host": None,
    "sshpass -f file mysql -p shop_eu1": None,
    # a blank alone
    f"redis-cli -h r -a {_P} ping": _P,
    f"valkey-cli --pass {_P} ping": _P,
    # logins
    f"docker login -u bob -p {_P} hub.test": _P,
    f"podman login --password={_P} hub.test": _P,
    f"helm registry login -u bob --password {_P} hub.test": _P,
    f"az login --service-principal -u app -p {_P} --tenant t": _P,
    f"oc login -u bob -p {_P}": _P,
    "docker login -u bob --password-stdin hub4.test": None,
    # others
    f"ldapsearch -x -D cn=bob -w {_P} -b dc=test": _P,
    f"ldapmodify -w{_P} -f x": _P,
    f"smbclient //s.test/a -U bob%{_P}": _P,
    f"openssl rsa -in k.pem -passin pass:{_P}": _P,
    f"openssl enc -aes-256-cbc -k {_P} -in a": _P,
    f"wget --user=bob --password={_P} https://a.test/f": _P,
    f"wget --http-password {_P} https://a.test/f": _P,
    f"curl -u bob:{_P} https://a.test": _P,
    f"sqlcmd -S db -U sa -P {_P} -Q x": _P,
    f"cqlsh -u bob -p {_P} host": _P,
    f"clickhouse-client --password {_P} -q x": _P,
    f"unzip -P {_P} a.zip": _P,
    f"7z x -p{_P} a.7z": _P,
    f"keytool -list -keystore k -storepass {_P}": _P,
    f"htpasswd -b users bob {_P}": _P,
    f"htpasswd -nb bob {_P}": _P,
    f"htpasswd -bnBC 10 bob {_P}": _P,
    f"htpasswd -c -B -b users bob {_P}": _P,
    "htpasswd users bob-account9": None,
    f"aws configure set aws_secret_access_key {_AWS} --profile dev": _AWS,
    f"aws --profile dev configure set profile.dev.aws_secret_access_key '{_AWS}'": _AWS,
    f"aws configure set aws_session_token {_AWS}": _AWS,
    f'["aws", "configure", "set", "aws_secret_access_key", "{_AWS}"]': _AWS,
    "aws configure set aws_secret_access_key $SECRET_ACCESS_KEY1": None,
    "aws configure set region eu-central-1": None,
    "aws configure get aws_secret_access_key --profile prod-account9": None,
    "htpasswd -n bob-account9": None,
    # short options in one word, as long as none of them takes a value
    f"mysql -vvp'{_P}' shop": _P,
    f"mysql.exe -uroot -p{_P} shop": _P,
    f"mycli -u root -p {_P} shop": _P,
    f"curl -sSu joe:{_P} https://a.test": _P,
    f"curl -su 'joe:{_P}' https://a.test": _P,
    f"curl -x p.test -U joe:{_P} https://a.test": _P,
    f"ldapsearch -xLLLw {_P} -b dc=test": _P,
    f"zip -rqP {_P} a.zip a": _P,
    f"redis-cli -a{_P} ping": _P,
    "mysql -uadmin-prod9x -h db": None,
    "curl -sSo utf:out9File1x https://a.test": None,
    # quotes, and a domain before a name
    f"htpasswd -b x joe '{_P}'": _P,
    f'htpasswd -cbB f "joe" "{_P}"': _P,
    f"smbclient -U 'DOM\\joe%{_P}' //s.test/a": _P,
    f"smbclient -U DOM/joe%{_P} //s.test/a": _P,
    f'smbclient "//s.test/a" --user "joe%{_P}"': _P,
    # the name of the command in quotes
    f"'/usr/bin/mysql' -uroot -p{_P} shop": _P,
    f'"C:\\Program Files\\MySQL\\bin\\mysql.exe" -uroot -p{_P} shop': _P,
    f'"docker" "login" -u bob -p {_P} h': _P,
    'docker run --name "mongo" -p 27017:27017 mongo:7': None,
    # options before a subcommand
    f"docker --config /x login -p {_P}": _P,
    f"docker -H h login -u j -p {_P}": _P,
    f"az --debug acr login -u j -p {_P}": _P,
    "docker -H h run -p shop_eu1x login": None,
    "docker --debug build -p my-crate9x": None,
    # lists of words
    f'["redis-cli","-a","{_P}"]': _P,
    f'CMD ["mysql","-p{_P}"]': _P,
    f'subprocess.run(["sshpass", "-p", "{_P}", "ssh", host])': _P,
    f"run(['mysql', '-u', user, '-p{_P}'])": _P,
    f'["docker", "--debug", "login", "-p", "{_P}"]': _P,
    f'["htpasswd", "-b", "f", "joe", "{_P}"]': _P,
    f'["curl", "-u", "joe:{_P}"]': _P,
    '["mysql", "-p", "shop_eu1x"]': None,
    '["sshpass", "-e", "ssh", "-p", "shop_eu1x"]': None,
    '["mysql"], ["cargo", "-phello9world"]': None,
    # a port, a project, a path, a pattern
    "psql -h db -p 54321 shop_eu1": None,
    "pg_dump -p shop_eu1": None,
    "ssh -p 22022 bob@host": None,
    "cargo test -p my-crate9x": None,
    "mkdir -p build2/out9x": None,
    "grep -p shop_eu1 x": None,
    "sqlcmd -d shop_eu1": None,
    "7z x -p shop_eu1": None,
    # the next line is another command
    "mysql shop\nredis-benchmark -phello9world": None,
    "docker login\ncargo test -p my-crate9x": None,
    # but not where a line goes on
    f"mysql -h db \\\n  -p{_P} \\\n  shop": _P,
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("place", ["plain", "prompt", "document"])
def test_a_password_is_found_where_its_command_reads_one(command: str, place: str) -> None:
    """In a log, in a message of a prompt, and in a string of JSON that is in a string of JSON."""
    text = f"Run this:\n{command}\nThen go on."
    if place != "plain":
        text = json.dumps({"messages": [{"role": "user", "content": text}]})
    if place == "document":
        text = json.dumps({"body": text})
    found = finder().find(Context(text.encode())).found
    assert [text[one.start : one.end] for one in found] == (
        [COMMANDS[command]] if COMMANDS[command] else []
    )
