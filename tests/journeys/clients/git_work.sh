# Clones, fetches and pushes: `git_work.sh BASE [CHANGE]`, in an empty folder. Says what it got.
set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
export GIT_AUTHOR_DATE='2026-11-02T10:00:00Z' GIT_COMMITTER_DATE='2026-11-02T10:00:00Z' GIT_TERMINAL_PROMPT=0
rm -rf clone
branch=main; [ "$2" = branch ] && branch=other
git clone -q --single-branch --branch $branch "$1/some.git" clone
cd clone
fetched=feature; [ "$2" = ref ] && fetched=other
git fetch -q origin $fetched
git rev-parse HEAD FETCH_HEAD
git show --stat --format=%s FETCH_HEAD
text=new; [ "$2" = content ] && text=other
echo $text > new.txt
git add .
git commit -q -m new
pushed=topic; [ "$2" = pushed ] && pushed=topic-2
git push -q origin HEAD:refs/heads/$pushed
git rev-parse HEAD
cat ./*.txt
